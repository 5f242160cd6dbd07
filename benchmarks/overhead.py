"""What measuring costs: a bare forward pass against one with every default metric, side by side.

    python benchmarks/overhead.py [--pairs 9]

Both go over the 45 shipped photographs in batches of 8: decode, preprocess, forward. Each pair runs
both, in alternating order, so that the ratio of a pair is free of the machine's slow drifts; the
median over pairs is reported. Measuring includes turning sums into estimates with error bars, once
at the end; its share is shown beside.
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
    from isotest.models.batches import batches
    from isotest.models.load import load_model

    dataset = open_data("sample:photographs")
    print(
        f"{len(dataset)} images in batches of {BATCH}, {torch.get_num_threads()} threads, "
        f"medians of {pairs} pairs\n"
    )
    print("| model | bare, s | with all metrics, s | ratio | of it estimates at the end |")
    print("|---|---|---|---|---|")
    for name, source in MODELS.items():
        loaded = load_model(source)

        def bare() -> None:
            # What a user's own loop would do: decode, preprocess, run.
            with torch.inference_mode():
                feed = loaded.feed  # noqa: B023
                pieces = feed.pieces(dataset, grouped=dataset.grouped)
                for batch in batches(pieces, BATCH, feed.together):
                    loaded.module(**feed.batch(batch).arguments)  # noqa: B023

        def measured() -> None:
            measure_loaded(
                loaded,  # noqa: B023
                dataset,
                source=source,  # noqa: B023
                model=name,  # noqa: B023
                batch_size=BATCH,
                progress=lambda _count: ends.append(time.perf_counter()),  # noqa: B023
            )

        ends: list[float] = []
        bare()
        measured()
        plain, full, ratios, finals = [], [], [], []
        for pair in range(pairs):
            order = (bare, measured) if pair % 2 == 0 else (measured, bare)
            took = {}
            for run in order:
                took[run] = seconds(run)
                if run is measured:
                    finals.append((time.perf_counter() - ends[-1]) / took[run])
            plain.append(took[bare])
            full.append(took[measured])
            ratios.append(took[measured] / took[bare])
        print(
            f"| {name} | {statistics.median(plain):.3f} | {statistics.median(full):.3f} "
            f"| {statistics.median(ratios):.3f} | {statistics.median(finals):.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
