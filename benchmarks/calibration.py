"""Are the error bars right? Coverage, false alarms and power of the gate on simulated layers.

    OMP_NUM_THREADS=1 python benchmarks/calibration.py [--quick] [--seed 0]

Sequences of a simulated layer share an offset: x_si = μ e + √ρ c_s + √(1 − ρ) z_si with standard
normal c and z. All directions but e are alike, so the truth is known in closed form: the mean
cosine of two independent representations is ‖E u‖². Everything measured goes through the code that
measures real layers and through the gate's own verdict. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from isotest.gate.quantiles import t_quantile
from isotest.gate.regressions import LayerChange, judge_changes
from isotest.statistics.jackknife import paired_change
from isotest.statistics.layer import LayerStatistics

if TYPE_CHECKING:
    from isotest.estimate import Estimate

LAYERS = 13
ALPHA = 0.01


@dataclass(frozen=True)
class Sizes:
    """How much is simulated."""

    coverage: int
    comparisons: int
    power: int
    curve: int


FULL = Sizes(coverage=2000, comparisons=2000, power=400, curve=200)
QUICK = Sizes(coverage=200, comparisons=100, power=40, curve=20)


def true_anisotropy(drift: float, width: int) -> float:
    """‖E X/‖X‖‖² for X ~ N(drift·e, I): (λ/√2 Γ((d+1)/2)/Γ(d/2+1) ₁F₁(½; d/2+1; −λ²/2))²."""
    from scipy.special import gammaln, hyp1f1

    ratio = math.exp(gammaln((width + 1) / 2) - gammaln(width / 2 + 1))
    return float(drift / math.sqrt(2) * ratio * hyp1f1(0.5, width / 2 + 1, -(drift**2) / 2)) ** 2


def drift_for(anisotropy: float, width: int) -> float:
    """The drift that gives this true anisotropy."""
    from scipy.optimize import brentq

    if anisotropy == 0:
        return 0.0
    return float(brentq(lambda drift: true_anisotropy(drift, width) - anisotropy, 0, 1000))


def sequences(
    count: int, length: int, width: int, clustering: float, generator: torch.Generator
) -> torch.Tensor:
    """(count, length, width) representations without drift; ``clustering`` is ρ."""
    shared = torch.randn(count, 1, width, generator=generator)
    own = torch.randn(count, length, width, generator=generator)
    return own.mul_(math.sqrt(1 - clustering)).add_(shared, alpha=math.sqrt(clustering))


def measured(x: torch.Tensor, mask: torch.Tensor | None = None) -> tuple[Estimate, tuple[int, ...]]:
    """Anisotropy as a suite would measure it, and the sizes of its blocks."""
    layer = LayerStatistics(["anisotropy"], grouped=False)
    layer.update(x, torch.arange(len(x)), mask)
    return layer.estimates()["anisotropy"], layer.block_representations


def with_drift(x: torch.Tensor, drift: float) -> torch.Tensor:
    """The representations moved by ``drift`` along the first dimension."""
    moved = x.clone()
    moved[:, :, 0] += drift
    return moved


def coverage(trials: int, generator: torch.Generator) -> None:
    """Share of 95 % t intervals that hold the truth."""
    count, length, width = 128, 8, 32
    levels = (0.0, 0.02, 0.1, 0.3, 0.6, 0.9)
    clusterings = (0.0, 0.1, 0.3, 0.6, 0.9)
    print(
        f"\n## Coverage\n\nShare of {trials} intervals at 95 % that hold the true anisotropy: "
        f"{count} sequences in 64 blocks, {length} representations of width {width} each; in the "
        f"last row sequences keep 1 to {length} of them at random, so blocks are unequal (ρ = 0.3)."
        "\n\n| clustering ρ | " + " | ".join(f"anisotropy {level:g}" for level in levels) + " |"
    )
    print("|---" * (1 + len(levels)) + "|")
    rows = [(f"{rho:g}", rho, False) for rho in clusterings] + [("unequal blocks", 0.3, True)]
    for label, rho, unequal in rows:
        cells = []
        for level in levels:
            drift = drift_for(level, width)
            hits = 0
            for _ in range(trials):
                x = with_drift(sequences(count, length, width, rho, generator), drift)
                mask = None
                if unequal:
                    kept = torch.randint(1, length + 1, (count, 1), generator=generator)
                    mask = torch.arange(length)[None] < kept
                estimate, _ = measured(x, mask)
                assert estimate.value is not None
                assert estimate.se is not None
                half = t_quantile(0.975, len(estimate.blocks) - 1) * estimate.se
                hits += abs(estimate.value - level) <= half
            cells.append(f"{100 * hits / trials:.1f} %")
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


def change(
    new: tuple[Estimate, tuple[int, ...]],
    base: tuple[Estimate, tuple[int, ...]],
    margin: float,
    layer: str = "0",
) -> LayerChange:
    """What the gate judges of one layer."""
    difference, error, freedom = paired_change(new[0], base[0], base[1])
    assert error is not None
    assert new[0].value is not None
    assert base[0].value is not None
    return LayerChange(
        layer, base[0].value, new[0].value, difference, error, freedom, margin=margin
    )


def false_alarms(comparisons: int, generator: torch.Generator) -> None:
    """How often a check over 13 layers fails when nothing has changed but noise."""
    count, length, width = 128, 4, 16
    print(
        f"\n## False alarms\n\nShare of {comparisons} paired comparisons that fail at a zero "
        f"margin without a true change: {LAYERS} layers that share half of the offsets of {count} "
        f"sequences in 64 blocks, Holm at {ALPHA:.0%}. Both measurements add their own noise (sd "
        "0.3, a third of it shared within a sequence) to the same representations, so that "
        "neither is systematically higher.\n\n| anisotropy | clustering ρ | worse = up "
        "| worse = both |\n|---|---|---|---|"
    )
    for level, rho in ((0.0, 0.3), (0.1, 0.3), (0.5, 0.3), (0.1, 0.9)):
        drift = drift_for(level, width) * math.sqrt(1 + 0.3**2)  # of the noise below
        left = 1 - rho / 2
        alarms = {"up": 0, "both": 0}
        for _ in range(comparisons):
            common = torch.randn(count, 1, width, generator=generator)
            changes = []
            for layer in range(LAYERS):
                x = math.sqrt(left) * sequences(count, length, width, rho / 2 / left, generator)
                x = with_drift(x + math.sqrt(rho / 2) * common, drift)
                pair = [
                    measured(x + 0.3 * sequences(count, length, width, 1 / 3, generator))
                    for _ in range(2)
                ]
                changes.append(change(pair[1], pair[0], 0.0, str(layer)))
            alarms["up"] += judge_changes(changes, "up", ALPHA).outcome == "failed"
            alarms["both"] += judge_changes(changes, "both", ALPHA).outcome == "failed"
        shares = " | ".join(f"{100 * alarms[worse] / comparisons:.2f} %" for worse in alarms)
        print(f"| {level:g} | {rho:g} | {shares} |", flush=True)


class Realistic:
    """One encoder-like layer and its retrained twin: 256 sequences of 128 tokens.

    Anisotropy 0.15 with a standard error of about 0.004, as a real encoder has it; the twin's noise
    within sequences is chosen so that the paired standard error is near 0.0008, the largest that
    perturbing a real encoder's weights by up to 10 % gave.
    """

    count, length, width = 256, 128, 32
    level, clustering, noise = 0.15, 0.3, 0.15

    def __init__(self, generator: torch.Generator) -> None:
        self.x = sequences(self.count, self.length, self.width, self.clustering, generator)
        noise = sequences(self.count, self.length, self.width, 0.5, generator)
        self.twin = self.x + self.noise * noise
        # Noise lengthens the representations: the twin's drift must grow with it to stay alike.
        self.stretch = math.sqrt(1 + self.noise**2)
        self.base = measured(with_drift(self.x, drift_for(self.level, self.width)))

    def changed(self, shift: float) -> tuple[Estimate, tuple[int, ...]]:
        """The twin, its true anisotropy higher by ``shift``."""
        drift = drift_for(self.level + shift, self.width) * self.stretch
        return measured(with_drift(self.twin, drift))


def others(margin: float) -> list[LayerChange]:
    """The other layers of the check, unchanged: they only cost multiplicity."""
    return [
        LayerChange(str(layer), 0.15, 0.15, 0.0, 1e-6, 63, margin=margin)
        for layer in range(1, LAYERS)
    ]


def power(trials: int, generator: torch.Generator) -> None:
    """How often a small shift in one of 13 layers is found at a zero margin."""
    shifts = (0.0, 0.001, 0.002, 0.003, 0.005, 0.008)
    found = dict.fromkeys(shifts, 0)
    unpaired_found = dict.fromkeys(shifts, 0)
    errors, paired_errors = 0.0, 0.0
    for _ in range(trials):
        layer = Realistic(generator)
        assert layer.base[0].se is not None
        errors += layer.base[0].se / trials
        for shift in shifts:
            new = layer.changed(shift)
            planted = change(new, layer.base, 0.0)
            judged = judge_changes([planted, *others(0.0)], "up", ALPHA)
            found[shift] += judged.where[0] == "beyond"
            if shift == shifts[-1]:
                paired_errors += planted.se / trials
            assert new[0].se is not None
            unpaired = math.hypot(new[0].se, layer.base[0].se)
            alone = LayerChange("0", planted.base, planted.new, planted.change, unpaired, 63, 0.0)
            judged = judge_changes([alone, *others(0.0)], "up", ALPHA)
            unpaired_found[shift] += judged.where[0] == "beyond"
    print(
        f"\n## Power at a zero margin\n\nShare of {trials} trials in which a planted shift in one "
        f"of {LAYERS} layers is found: {Realistic.count} sequences of {Realistic.length} tokens, "
        f"anisotropy {Realistic.level:g}, standard error {errors:.4f}, of the paired change "
        f"{paired_errors:.5f}, Holm at {ALPHA:.0%}. *Unpaired* takes the two error bars as if the "
        "measurements were of different data.\n\n| shift | paired | unpaired |\n|---|---|---|"
    )
    for shift in shifts:
        paired, unpaired = (100 * table[shift] / trials for table in (found, unpaired_found))
        print(f"| {shift:g} | {paired:.1f} % | {unpaired:.1f} % |")


def curve(trials: int, generator: torch.Generator) -> None:
    """Verdicts on either side of a margin."""
    margin = 0.02
    shifts = (0.0, 0.01, 0.015, 0.017, 0.018, 0.019, 0.02, 0.021, 0.022, 0.023, 0.025, 0.03)
    counts = {shift: dict.fromkeys(("within", "undecided", "beyond"), 0) for shift in shifts}
    for _ in range(trials):
        layer = Realistic(generator)
        for shift in shifts:
            planted = change(layer.changed(shift), layer.base, margin)
            judged = judge_changes([planted, *others(margin)], "up", ALPHA)
            counts[shift][judged.where[0]] += 1
    print(
        f"\n## Power with a margin\n\nVerdicts of {trials} trials with a margin of {margin:g}, "
        "the same layer.\n\n| shift | passed: within | cannot tell | failed: beyond |"
        "\n|---|---|---|---|"
    )
    for shift, count in counts.items():
        cells = " | ".join(f"{100 * number / trials:.1f} %" for number in count.values())
        print(f"| {shift:g} | {cells} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else FULL
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(arguments.seed)
    start = time.perf_counter()
    steps = (
        (coverage, sizes.coverage),
        (false_alarms, sizes.comparisons),
        (power, sizes.power),
        (curve, sizes.curve),
    )
    for step, trials in steps:
        step(trials, generator)
        print(f"[{time.perf_counter() - start:.0f} s]", file=sys.stderr)


if __name__ == "__main__":
    main()
