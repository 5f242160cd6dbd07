"""A small profile, ways to change it, and hand-made edits of its file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isotest.estimate import Estimate
from isotest.profile import LayerProfile, Profile, Provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

DATA = "3f2a" + "0" * 60
WEIGHTS = "aa11" + "0" * 60
COMMIT = "3f49326eb077187dfe1c2a2bb15fbd74e6ab91e3"


def profile(
    values: Mapping[str, float] = {"0": 0.05, "1": 0.113, "final": 0.21},
    **changes: Any,
) -> Profile:
    """Three layers in two blocks, one metric with the given values and one that is undefined."""
    made = Profile(
        suite="vision/transformers",
        model="vit",
        modality="vision",
        sequences=5,
        units=4,
        block_sequences=(3, 2),
        layers=tuple(layer(name, value) for name, value in values.items()),
        provenance=Provenance(
            source="init:vit?seed=0",
            architecture={"class": "ViTModel", "parameters": "p" * 8, "config": "c" * 8},
            protocol={"seed": 0, "dtype": "float32", "scale": 0.5, "group": None, "flip": False},
            data=DATA,
            weights=WEIGHTS,
            commit=None,
            device="cpu",
            versions={"isotest": "0.1.0", "torch": "2.14.1"},
            created="2026-11-30T09:00:00+00:00",
        ),
    )
    return replace(made, **changes)


def layer(name: str, value: float, **changes: Any) -> LayerProfile:
    made = LayerProfile(
        name=name,
        module=f"encoder.{name}",
        width=8,
        representations=20,
        zero_length=1,
        block_representations=(12, 8),
        estimates={
            "anisotropy": Estimate(value, 0.01, (value - 0.01, value + 0.01)),
            "drift_share": Estimate(None, undefined="no anisotropy to share", vacuous=True),
        },
    )
    return replace(made, **changes)


def conditions(measured: Profile, **changes: Any) -> Profile:
    """``measured`` under other conditions."""
    return replace(measured, provenance=replace(measured.provenance, **changes))


def edit(path: Path, change: Callable[[Any], object], *, sign: bool = True) -> None:
    """Edit the file as JSON; ``sign`` gives it the digest that its new content should have.

    The digest is computed here a second time, as docs/baselines.md describes it.
    """
    document = json.loads(path.read_bytes())
    change(document)
    if sign:
        body = {key: value for key, value in document.items() if key != "digest"}
        canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
        document["digest"] = "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
    path.write_text(json.dumps(document), encoding="utf-8")


def without_temporaries(folder: Path) -> list[str]:
    """All names in ``folder``, hidden ones too."""
    return sorted(path.name for path in folder.iterdir())
