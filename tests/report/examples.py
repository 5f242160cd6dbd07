"""Profiles and entries made by hand, for reports and commands that only read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.estimate import Estimate
from isotest.profile import LayerProfile, Profile, Provenance
from isotest.report.entry import CheckSummary, EntrySummary, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCKS = 4
SUITE = "suites/vision/a.toml"


def estimate(value: float | None, spread: float = 0.01) -> Estimate:
    """A value whose pseudo-values lie evenly around it."""
    if value is None:
        return Estimate(None, undefined="no direction")
    steps = (-1.5, -0.5, 0.5, 1.5)
    blocks = tuple(value + spread * step for step in steps)
    return Estimate(value, spread * (5 / 12) ** 0.5, blocks)


def profile(
    curve: Sequence[float | None],
    *,
    model: str = "vit",
    seed: int = 0,
    norms: Sequence[float] | None = None,
    spread: float = 0.01,
) -> Profile:
    """A profile of ``anisotropy`` (and ``mean_norm``), the last layer being ``final``."""
    names = [*map(str, range(len(curve) - 1)), "final"]
    return Profile(
        suite="vision/a",
        model=model,
        modality="vision",
        sequences=8,
        units=4,
        block_sequences=(2,) * BLOCKS,
        layers=tuple(
            LayerProfile(
                name=name,
                module=f"block.{name}",
                width=16,
                representations=80,
                zero_length=0,
                block_representations=(20,) * BLOCKS,
                estimates={
                    "anisotropy": estimate(value, spread),
                    **({"mean_norm": estimate(norms[index])} if norms else {}),
                },
            )
            for index, (name, value) in enumerate(zip(names, curve, strict=True))
        ),
        provenance=Provenance(
            source=f"init:vit?seed={seed}",
            architecture={"class": "ViTModel", "parameters": "p" * 8, "config": "c" * 8},
            protocol={
                "data.source": "sample:photographs",
                "data.samples": 8,
                "representation": "positions",
                "special_tokens": "exclude",
                "dtype": "float32",
            },
            data="sha256:" + "d" * 64,
            weights="sha256:" + f"{seed:x}" * 64,
            commit=None,
            device="cpu",
            versions={"torch": "2.14.1"},
            created="2026-11-30T10:00:00+00:00",
        ),
    )


def checks(*results: Result) -> tuple[CheckSummary, ...]:
    """Checks that ended so, one after the other."""
    return tuple(
        CheckSummary(
            f"check-{number}",
            result,
            green=result in ("passed", "skipped"),
            headline=f"check-{number} {result}",
            message=f"check-{number} {result}\n  and why",
        )
        for number, result in enumerate(results)
    )


def entry(
    model: str,
    curve: Sequence[float | None] | None,
    *results: Result,
    baseline: Sequence[float | None] | None = None,
    cached: bool = False,
    seconds: float = 2.0,
    skipped: str | None = None,
    recorded: bool = False,
) -> EntrySummary:
    """An entry of the suite ``SUITE``."""
    return EntrySummary(
        suite=SUITE,
        model=model,
        profile=None if curve is None else profile(curve, model=model),
        baseline=None if baseline is None else profile(baseline, model=model),
        checks=checks(*results),
        cached=cached,
        seconds=seconds,
        skipped=skipped,
        recorded=recorded,
    )
