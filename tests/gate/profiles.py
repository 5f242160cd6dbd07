"""Profiles made of block values, for which the jackknife is the ordinary mean and its error."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from isotest.estimate import Estimate
from isotest.gate.evaluate import evaluate
from isotest.gate.message import MessageContext
from isotest.profile import LayerProfile, Profile, Provenance
from isotest.statistics.jackknife import jackknife

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from isotest.gate.checks import Check
    from isotest.gate.verdict import Verdict

BLOCKS = 8
SUITE = "suites/vision/tiny.toml"
CONTEXT = MessageContext(
    suite=SUITE,
    baseline="baselines/vision/tiny/vit.json",
    node=f"{SUITE}::vit::anisotropy",
    record=f"pytest --isotest {SUITE}::vit --isotest-update=missing",
    accept=f"pytest --isotest {SUITE}::vit --isotest-update=failing",
)

Values: TypeAlias = "float | Sequence[float] | NDArray[np.float64] | Estimate"


def estimate(values: Values, blocks: int = BLOCKS) -> Estimate:
    """The mean of block values, a float meaning the same in every block."""
    if isinstance(values, Estimate):
        return values
    points = np.full(blocks, values) if isinstance(values, float) else np.asarray(values)
    total = points.sum()
    without = [(total - point) / (len(points) - 1) for point in points] if len(points) > 1 else []
    return jackknife(float(points.mean()), without, [4] * len(points))


def spread(mean: float, sd: float, blocks: int = BLOCKS) -> tuple[float, ...]:
    """Block values of exactly this mean and sample standard deviation."""
    points = np.resize([1.0, -1.0], blocks)
    points = (points - points.mean()) / points.std(ddof=1)
    return tuple(mean + sd * points)


def profile(
    curves: Mapping[str, Sequence[Values]],
    *,
    names: Sequence[str] | None = None,
    created: str = "2026-01-02T00:00:00+00:00",
    blocks: int = BLOCKS,
) -> Profile:
    """A profile of these curves; layers are ``0``, ``1``, … unless named."""
    count = len(next(iter(curves.values())))
    names = names or [str(number) for number in range(count)]
    layers = tuple(
        LayerProfile(
            name=name,
            module=f"blocks.{name}",
            width=16,
            representations=4 * blocks,
            zero_length=0,
            block_representations=(4,) * blocks,
            estimates={metric: estimate(curve[i], blocks) for metric, curve in curves.items()},
        )
        for i, name in enumerate(names)
    )
    return Profile(
        suite="vision/tiny",
        model="vit",
        modality="vision",
        sequences=4 * blocks,
        units=4 * blocks,
        block_sequences=(4,) * blocks,
        layers=layers,
        provenance=Provenance(
            source="init:vit?seed=0",
            architecture={"class": "ViT"},
            protocol={},
            data="d" * 64,
            weights="w" * 64,
            commit=None,
            device="cpu",
            versions={},
            created=created,
        ),
    )


def accepted(curves: Mapping[str, Sequence[Values]], **options: object) -> Profile:
    """A profile that was measured earlier: a baseline."""
    made = profile(curves, **options)  # type: ignore[arg-type]
    return replace(made, provenance=replace(made.provenance, created="2026-01-01T00:00:00+00:00"))


def judge(
    new: Profile,
    base: Profile | None,
    check: Check,
    name: str = "anisotropy",
    *,
    differences: Sequence[str] = (),
    context: MessageContext = CONTEXT,
) -> Verdict:
    """Evaluate with this module's context."""
    return evaluate(new, base, name, check, differences=differences, context=context)
