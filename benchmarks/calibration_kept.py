"""Are the error bars of spectra, neighbours and what centring leaves right? On simulated layers.

    OMP_NUM_THREADS=1 python benchmarks/calibration_kept.py [--trials 300] [--seed 0]

Sequences of a simulated layer share an offset: x_si = μ e + A (√ρ c_s + √(1 − ρ) z_si) with
standard normal c and z, and A = diag(k^−½) or I. These metrics depend on how many representations
there are, so the question is whether an error bar is that of the estimator at this number: the
truth is its mean over all trials, and the spread its standard deviation over them. A second
measurement adds other noise to the same representations and is compared, paired, through the
gate's own verdict. Prints a Markdown table for each layer.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.gate.quantiles import t_quantile
from isotest.gate.regressions import LayerChange, judge_changes
from isotest.statistics.jackknife import paired_change
from isotest.statistics.layer import LayerStatistics
from isotest.statistics.registry import METRICS

if TYPE_CHECKING:
    from isotest.estimate import Estimate

ALPHA = 0.05
METRICS_OF_KEPT = tuple(name for name, metric in METRICS.items() if metric.evaluator)


@dataclass(frozen=True)
class Layer:
    """A simulated layer."""

    label: str
    count: int
    length: int
    width: int
    decay: float
    drift: float
    clustering: float

    def draw(self, generator: torch.Generator) -> torch.Tensor:
        """(count, length, width) representations."""
        x = self._clustered(self.clustering, generator) * self.scales
        x[:, :, 0] += self.drift
        return x

    def again(self, x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """The same, measured with noise: a third of it shared within a sequence."""
        return x + 0.3 * self._clustered(1 / 3, generator) * self.scales

    @property
    def scales(self) -> torch.Tensor:
        """Standard deviation of each dimension."""
        return torch.arange(1, self.width + 1) ** -self.decay

    def _clustered(self, clustering: float, generator: torch.Generator) -> torch.Tensor:
        shared = torch.randn(self.count, 1, self.width, generator=generator)
        own = torch.randn(self.count, self.length, self.width, generator=generator)
        return math.sqrt(clustering) * shared + math.sqrt(1 - clustering) * own


LAYERS = (
    Layer("narrow, uneven", 128, 4, 32, decay=0.5, drift=1.0, clustering=0.3),
    Layer("kept, uneven", 128, 4, 96, decay=0.5, drift=1.0, clustering=0.3),
    Layer("kept, N < D, uneven", 64, 2, 160, decay=0.5, drift=1.0, clustering=0.3),
    Layer("kept, even", 128, 4, 96, decay=0.0, drift=0.0, clustering=0.0),
)


def measured(x: torch.Tensor) -> tuple[dict[str, Estimate], tuple[int, ...]]:
    """All metrics as a suite would measure them, and the sizes of the blocks."""
    layer = LayerStatistics(METRICS_OF_KEPT, grouped=False)
    layer.update(x, torch.arange(len(x)))
    return layer.estimates(), layer.block_representations


def alarm(new: Estimate, base: Estimate, sizes: tuple[int, ...]) -> bool:
    """Whether the gate fails a change at a zero margin."""
    difference, error, freedom = paired_change(new, base, sizes)
    assert error is not None
    assert new.value is not None
    assert base.value is not None
    judged = LayerChange("0", base.value, new.value, difference, error, freedom, margin=0.0)
    return judge_changes([judged], "both", ALPHA).outcome == "failed"


def calibrate(layer: Layer, trials: int, generator: torch.Generator) -> None:
    """One table: spread and error bar, coverage, false alarms of each metric."""
    found: dict[str, list[Estimate]] = {name: [] for name in METRICS_OF_KEPT}
    alarms = dict.fromkeys(METRICS_OF_KEPT, 0)
    for _ in range(trials):
        x = layer.draw(generator)
        (base, sizes), (new, _) = (measured(layer.again(x, generator)) for _ in range(2))
        for name in METRICS_OF_KEPT:
            found[name].append(base[name])
            alarms[name] += alarm(new[name], base[name], sizes)
    print(
        f"\n### {layer.label}\n\n{layer.count} sequences of {layer.length} representations of "
        f"width {layer.width}, dimension k of standard deviation k^−{layer.decay:g}, drift "
        f"{layer.drift:g}, clustering ρ = {layer.clustering:g}; {trials} trials.\n\n"
        "| metric | mean | isotropic | spread | mean error / spread | 95 % intervals that hold the "
        f"mean | false alarms at {ALPHA:.0%} |\n|---|---|---|---|---|---|---|"
    )
    for name, estimates in found.items():
        values = np.array([estimate.value for estimate in estimates], dtype=np.float64)
        errors = np.array([estimate.se for estimate in estimates], dtype=np.float64)
        half = t_quantile(0.975, len(estimates[0].blocks) - 1) * errors
        held = (np.abs(values - values.mean()) <= half).mean()
        spread = values.std(ddof=1)
        if not spread:
            continue  # nothing varies: no copies among these
        even = estimates[0].isotropic
        print(
            f"| `{name}` | {values.mean():.4g} | {'-' if even is None else f'{even:.4g}'} | "
            f"{spread:.2g} | {errors.mean() / spread:.2f} | {100 * held:.1f} % | "
            f"{100 * alarms[name] / trials:.1f} % |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(arguments.seed)
    start = time.process_time()
    for layer in LAYERS:
        calibrate(layer, arguments.trials, generator)
        print(f"[{time.process_time() - start:.0f} s]", file=sys.stderr)


if __name__ == "__main__":
    main()
