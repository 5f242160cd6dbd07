"""Peak memory at ten thousand and a million representations: it must not grow.

    python benchmarks/memory.py [--quick]

Each measurement runs in a process of its own, which generates the representations batch by batch
and measures every metric; its peak resident memory is what the operating system says.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

WIDTH = 768
LENGTH = 100
BATCH = 20
TARGET = 1.10


def child(representations: int) -> None:
    import resource

    import torch

    from isotest.statistics.layer import LayerStatistics
    from isotest.statistics.registry import METRICS

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    layer = LayerStatistics(tuple(METRICS), grouped=False)
    x = torch.empty(BATCH, LENGTH, WIDTH)
    for start in range(0, representations // LENGTH, BATCH):
        x.normal_(mean=0.1, generator=generator)
        layer.update(x, torch.arange(start, start + BATCH))
    estimates = layer.estimates()
    assert layer.representations == representations
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    peak_mib = peak / (1024 if sys.platform != "darwin" else 1024**2)
    print(json.dumps({"peak": peak_mib, "anisotropy": estimates["anisotropy"].value}))


def measure(representations: int) -> float:
    done = subprocess.run(
        [sys.executable, __file__, "--child", str(representations)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(json.loads(done.stdout)["peak"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundred thousand at most")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        return
    few, many = 10_000, 100_000 if arguments.quick else 1_000_000
    print(f"width {WIDTH}, all metrics, target ratio ≤ {TARGET}\n")
    print("| representations | peak memory, MiB | ratio |\n|---|---|---|")
    base = measure(few)
    print(f"| {few:,} | {base:.0f} | 1.00 |")
    peak = measure(many)
    print(f"| {many:,} | {peak:.0f} | {peak / base:.3f} |")


if __name__ == "__main__":
    main()
