"""What measuring costs: a bare forward pass against one with the default metrics, side by side.

    python benchmarks/overhead.py [--rounds 5] [--images 45] [--passages 64] [--only BERT]

Both go over the same inputs in batches of 8: decode or tokenize, preprocess, forward. Vision models
see the shipped photographs, BERT the shipped passages in windows of 128 tokens. Bare and measured
batches take turns within one pass, so that a machine's slow drifts fall on both alike: the ratio of
a round is that of all its batches, everything else that measuring takes included (hooks put on and
off, digests, estimates with error bars at the end, whose share is shown beside). The median over
rounds is reported, with the lowest and the highest.
"""

from __future__ import annotations

import argparse
import statistics
import time
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from isotest.data.dataset import Dataset
    from isotest.models.loaded import LoadedModel

BATCH = 8


class Case(NamedTuple):
    """A model and what it reads."""

    source: str
    modality: str
    data: str
    tokenizer: str | None = None


CASES = {
    "ViT-B/16": Case("init:vit?seed=0", "vision", "sample:photographs"),
    "BERT-base": Case("init:bert?seed=0", "text", "sample:passages", "sample:tokenizer"),
    "ResNet-50": Case("init:resnet?seed=0", "vision", "sample:photographs"),
}


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


class Round(NamedTuple):
    """Seconds of one pass."""

    bare: float
    measured: float
    end: float

    @property
    def ratio(self) -> float:
        """Measured over bare."""
        return self.measured / self.bare


def one_round(
    name: str, case: Case, loaded: LoadedModel, twin: nn.Module, dataset: Dataset
) -> Round:
    """One measured pass; ``twin``, the same without hooks, runs each batch behind it."""
    import torch

    from isotest.measurement import measure_loaded
    from isotest.models.batches import batches

    feed = loaded.feed
    upcoming = batches(feed.pieces(dataset, grouped=dataset.grouped), BATCH, feed.together)
    bare: list[float] = []
    last = 0.0

    def bare_batch(_count: int) -> None:
        # What a user's own loop would do: decode, preprocess, run.
        def run() -> None:
            with torch.inference_mode():
                twin(**feed.batch(next(upcoming)).arguments)

        nonlocal last
        bare.append(seconds(run))
        last = time.perf_counter()

    def measured() -> None:
        measure_loaded(
            loaded,
            dataset,
            source=case.source,
            model=name,
            modality=case.modality,
            batch_size=BATCH,
            progress=bare_batch,
        )

    whole = seconds(measured)
    end = time.perf_counter() - last
    return Round(sum(bare), whole - sum(bare), end)


def row(name: str, case: Case, samples: int, rounds: int) -> str:
    from isotest.data.load import open_data
    from isotest.models.batches import batches
    from isotest.models.load import load_model
    from isotest.models.reading import Reading

    reading = Reading(case.tokenizer, "windows", 128, None)
    dataset = open_data(case.data, modality=case.modality, samples=samples)
    loaded = load_model(case.source, modality=case.modality, reading=reading)
    twin = deepcopy(loaded.module)
    pieces = loaded.feed.pieces(dataset, grouped=dataset.grouped)
    count = sum(1 for _ in batches(pieces, BATCH, loaded.feed.together))
    one_round(name, case, loaded, twin, dataset)  # fills caches and allocates
    seen = [one_round(name, case, loaded, twin, dataset) for _ in range(rounds)]
    ratios = [each.ratio for each in seen]
    return (
        f"| {name} | {count} | {statistics.median(each.bare for each in seen):.3f} "
        f"| {statistics.median(each.measured for each in seen):.3f} "
        f"| {statistics.median(ratios):.3f} | {min(ratios):.3f}–{max(ratios):.3f} "
        f"| {statistics.median(each.end / each.measured for each in seen):.1%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=45, help="photographs, at most 45")
    parser.add_argument("--passages", type=int, default=64, help="about 2.5 windows each")
    parser.add_argument("--only", default="", help="models whose name contains this")
    arguments = parser.parse_args()

    import torch

    print(f"batches of {BATCH}, {torch.get_num_threads()} threads, {arguments.rounds} rounds\n")
    print(
        "| model | batches | bare, s | measured, s | ratio, median | lowest–highest "
        "| of it estimates at the end |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, case in CASES.items():
        if arguments.only in name:
            samples = arguments.passages if case.modality == "text" else arguments.images
            print(row(name, case, samples, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
