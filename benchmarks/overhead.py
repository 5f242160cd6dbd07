"""What measuring costs: a bare forward pass against one with every default metric, side by side.

    python benchmarks/overhead.py [--pairs 9]

Each pair runs both on the same batch, in alternating order; the ratio of a pair is free of the
machine's slow drifts, and the median over pairs is reported.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MODELS = {"ViT-B/16": "init:vit?seed=0", "ResNet-50": "init:resnet?seed=0"}
BATCH = 8


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    pairs = parser.parse_args().pairs

    import torch

    from isotest.data.load import open_data
    from isotest.measurement import measure_loaded
    from isotest.models.load import load_model

    dataset = open_data("sample:photographs", samples=BATCH)
    print(f"batch of {BATCH}, {torch.get_num_threads()} threads, medians of {pairs} pairs\n")
    print("| model | bare forward pass, s | with all default metrics, s | ratio |")
    print("|---|---|---|---|")
    for name, source in MODELS.items():
        loaded = load_model(source)

        def bare() -> None:
            # What a user's own loop would do: decode, preprocess, run.
            with torch.inference_mode():
                loaded.module(**loaded.preprocess([sample.image for sample in dataset]))  # noqa: B023

        def measured() -> None:
            measure_loaded(loaded, dataset, source=source, model=name, batch_size=BATCH)  # noqa: B023

        bare(), measured()
        plain, full, ratios = [], [], []
        for pair in range(pairs):
            order = (bare, measured) if pair % 2 == 0 else (measured, bare)
            took = {run: seconds(run) for run in order}
            plain.append(took[bare])
            full.append(took[measured])
            ratios.append(took[measured] / took[bare])
        print(
            f"| {name} | {statistics.median(plain):.3f} | {statistics.median(full):.3f} "
            f"| {statistics.median(ratios):.3f} |"
        )


if __name__ == "__main__":
    main()
