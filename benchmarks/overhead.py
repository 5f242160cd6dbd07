"""What measuring costs: a bare forward pass against one with the default metrics, side by side.

    python benchmarks/overhead.py [--pairs 9] [--images 45] [--passages 64] [--only BERT]

Both go over the same inputs in batches of 8: decode or tokenize, preprocess, forward. Vision models
see the shipped photographs, BERT the shipped passages in windows of 128 tokens. Each pair runs
both, in alternating order, so that the ratio of a pair is free of the machine's slow drifts; the
median over pairs is reported, and the ratio of the fastest runs, which other jobs on the machine
disturb least. Measuring includes turning sums into estimates with error bars, once at the end; its
share is shown beside.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

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


def runs(
    name: str, case: Case, loaded: LoadedModel, dataset: Dataset, ends: list[float]
) -> tuple[Callable[[], object], Callable[[], object]]:
    """The bare pass, and the measured one, which notes when each batch was done."""
    import torch

    from isotest.measurement import measure_loaded
    from isotest.models.batches import batches

    def bare() -> None:
        # What a user's own loop would do: decode, preprocess, run.
        with torch.inference_mode():
            feed = loaded.feed
            pieces = feed.pieces(dataset, grouped=dataset.grouped)
            for batch in batches(pieces, BATCH, feed.together):
                loaded.module(**feed.batch(batch).arguments)

    def measured() -> None:
        measure_loaded(
            loaded,
            dataset,
            source=case.source,
            model=name,
            modality=case.modality,
            batch_size=BATCH,
            progress=lambda _count: ends.append(time.perf_counter()),
        )

    return bare, measured


def row(name: str, case: Case, samples: int, pairs: int) -> str:
    from isotest.data.load import open_data
    from isotest.models.load import load_model
    from isotest.models.reading import Reading

    reading = Reading(case.tokenizer, "windows", 128, None)
    dataset = open_data(case.data, modality=case.modality, samples=samples)
    loaded = load_model(case.source, modality=case.modality, reading=reading)
    ends: list[float] = []
    bare, measured = runs(name, case, loaded, dataset, ends)
    bare()
    measured()
    batches = len(ends)
    plain, full, finals = [], [], []
    for pair in range(pairs):
        for run in (bare, measured) if pair % 2 == 0 else (measured, bare):
            took = seconds(run)
            if run is measured:
                full.append(took)
                finals.append((time.perf_counter() - ends[-1]) / took)
            else:
                plain.append(took)
    ratios = [whole / part for whole, part in zip(full, plain, strict=True)]
    return (
        f"| {name} | {batches} | {min(plain):.3f} | {min(full):.3f} "
        f"| {statistics.median(ratios):.3f} | {min(full) / min(plain):.3f} "
        f"| {statistics.median(finals):.1%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--images", type=int, default=45, help="photographs, at most 45")
    parser.add_argument("--passages", type=int, default=64, help="about 2.5 windows each")
    parser.add_argument("--only", default="", help="models whose name contains this")
    arguments = parser.parse_args()

    import torch

    print(f"batches of {BATCH}, {torch.get_num_threads()} threads, {arguments.pairs} pairs\n")
    print(
        "| model | batches | bare, s | measured, s | ratio, median | ratio of fastest "
        "| of it estimates at the end |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, case in CASES.items():
        if arguments.only in name:
            samples = arguments.passages if case.modality == "text" else arguments.images
            print(row(name, case, samples, arguments.pairs), flush=True)


if __name__ == "__main__":
    main()
