"""What measuring attention costs: a bare forward pass against one with every attention metric.

    python benchmarks/attention.py [--pairs 9]

ViT-B/16 reads shipped photographs, BERT-base shipped passages in windows of 128 tokens, both
untrained and in batches of 8: decode, preprocess, forward. Each pair runs the three ways (bare; the
attention metrics alone; these and the default ones), in turning order, so that the ratio of a pair
is free of the machine's slow drifts; medians over pairs are reported.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
    from isotest.models.reading import Reading
    from isotest.statistics.registry import METRICS, default_metrics

    attention = [name for name in METRICS if "attention_" in name]
    reading = Reading(tokenizer="sample:tokenizer", length=128)
    models = {
        "ViT-B/16": ("init:vit?seed=0", "vision", "sample:photographs", 16),
        "BERT-base": ("init:bert?seed=0", "text", "sample:passages", 16),
    }
    print(
        f"batches of {BATCH}, {torch.get_num_threads()} threads, medians of {pairs} pairs, "
        "ratios to the bare pass\n"
    )
    print("| model | bare, s | attention metrics | attention and default metrics |")
    print("|---|---|---|---|")
    for name, (source, modality, data, samples) in models.items():
        loaded = load_model(source, modality=modality, reading=reading)
        dataset = open_data(data, modality=modality, samples=samples)

        def bare() -> None:
            # What a user's own loop would do: decode, preprocess, run.
            with torch.inference_mode():
                feed = loaded.feed  # noqa: B023
                pieces = feed.pieces(dataset, grouped=dataset.grouped)  # noqa: B023
                for batch in batches(pieces, BATCH, feed.together):
                    loaded.module(**feed.batch(batch).arguments)  # noqa: B023

        def measured(metrics: list[str]) -> None:
            measure_loaded(
                loaded,  # noqa: B023
                dataset,  # noqa: B023
                source=source,  # noqa: B023
                model=name,  # noqa: B023
                modality=modality,  # noqa: B023
                batch_size=BATCH,
                metrics=metrics,
            )

        ways: list[Callable[[], None]] = [
            bare,
            lambda: measured(attention),
            lambda: measured([*default_metrics(), *attention]),
        ]
        for way in ways:
            way()
        took: list[list[float]] = [[], [], []]
        for pair in range(pairs):
            for number in sorted(range(3), key=lambda way: (way + pair) % 3):
                took[number].append(seconds(ways[number]))
        ratios = [
            statistics.median(own / plain for own, plain in zip(took[way], took[0], strict=True))
            for way in (1, 2)
        ]
        print(
            f"| {name} | {statistics.median(took[0]):.3f} | {ratios[0]:.3f} | {ratios[1]:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
