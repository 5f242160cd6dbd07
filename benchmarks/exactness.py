"""The exact mean cosine against samples of pairs, the full matrix, and the package ``isoscore``.

    python benchmarks/exactness.py [--quick] [--seed 0]

All get the same representations: one to a sequence, so that all distinct pairs count. Times are
medians of several runs, given as a ratio to the exact formula's; errors are against the whole
matrix of pairs in float64 (of a sample of pairs: root mean square over several samples).
``isoscore`` measures something else and is timed only. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import TYPE_CHECKING

import torch

from isotest.statistics.layer import LayerStatistics

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 768
BATCH = 512


def exact(x: torch.Tensor) -> float:
    """As a suite measures it, error bar included."""
    layer = LayerStatistics(["anisotropy_all"], grouped=False)
    for start in range(0, len(x), BATCH):
        part = x[start : start + BATCH]
        layer.update(part[:, None], torch.arange(start, start + len(part)))
    value = layer.estimates()["anisotropy_all"].value
    assert value is not None
    return value


def sampled(x: torch.Tensor, pairs: int, generator: torch.Generator) -> float:
    """Mean cosine of randomly drawn distinct pairs, as the papers do."""
    first = torch.randint(len(x), (pairs,), generator=generator)
    other = torch.randint(len(x) - 1, (pairs,), generator=generator)
    second = other + (other >= first)
    total = 0.0
    for a, b in zip(first.split(10_000), second.split(10_000), strict=True):
        total += float(torch.nn.functional.cosine_similarity(x[a], x[b]).double().sum())
    return total / pairs


def matrix(x: torch.Tensor) -> float:
    """Mean off the diagonal of the N × N matrix of cosines, in the input's precision."""
    directions = torch.nn.functional.normalize(x, dim=1)
    cosines = directions @ directions.T
    cosines.fill_diagonal_(0)
    return float(cosines.sum()) / (len(x) * (len(x) - 1))


def pair_by_pair(x: torch.Tensor) -> float:
    """Mean over the N × N matrix in float64, some rows at a time: the reference."""
    directions = torch.nn.functional.normalize(x.double(), dim=1)
    total = sum(float((rows @ directions.T).sum()) for rows in directions.split(1_000))
    own = float(directions.square().sum())
    return (total - own) / (len(x) * (len(x) - 1))


def timed(run: Callable[[], float], times: int) -> tuple[float, list[float]]:
    run()
    seconds, values = [], []
    for _ in range(times):
        start = time.perf_counter()
        values.append(run())
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), values


def row(name: str, seconds: float, reference: float, error: str) -> None:
    print(f"| {name} | {seconds:.4f} | {seconds / reference:.2f} | {error} |", flush=True)


def compare(count: int, generator: torch.Generator, times: int) -> None:
    offset = torch.randn(WIDTH, generator=generator)
    x = torch.randn(count, WIDTH, generator=generator).add_(0.3 * offset)
    reference = pair_by_pair(x)
    print(f"\nN = {count:,}, d = {WIDTH}, mean cosine {reference:.4f}\n")
    print("| method | seconds | time ratio | error of the mean cosine |\n|---|---|---|---|")
    base, values = timed(lambda: exact(x), times)
    row("isotest, exact, with error bar", base, base, f"{abs(values[0] - reference):.1e}")
    for pairs in (1_000, 100_000):
        seconds, drawn = timed(lambda p=pairs: sampled(x, p, generator), 9)  # type: ignore[misc]
        error = math.sqrt(statistics.fmean((value - reference) ** 2 for value in drawn))
        row(f"{pairs:,} sampled pairs", seconds, base, f"{error:.1e}")
    seconds, values = timed(lambda: matrix(x), min(times, 3))
    row("full N × N matrix", seconds, base, f"{abs(values[0] - reference):.1e}")
    try:
        from IsoScore import IsoScore
    except ImportError:
        print("| `isoscore` | not installed: `pip install isoscore` | | |")
        return
    seconds, scores = timed(lambda: float(IsoScore.IsoScore(x.numpy())), 1)
    row(f"`isoscore` (another metric: {scores[0]:.3f})", seconds, base, "–")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="N = 2,000 only, fewer repetitions")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator = torch.Generator().manual_seed(arguments.seed)
    print(f"{torch.get_num_threads()} threads")
    for count in (2_000,) if arguments.quick else (2_000, 20_000):
        compare(count, generator, 3 if arguments.quick else 7)


if __name__ == "__main__":
    main()
