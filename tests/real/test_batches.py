"""Every entry of the suites at its real size: the numbers do not depend on the batch.

Eight samples of different lengths, one by one and in one padded batch: the same statistics to
rounding. And the library's own hidden states, in a naive script, give the same curves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from isotest.data.dataset import Waveform
from isotest.data.load import as_data, open_data
from isotest.measurement import measure_loaded
from isotest.models.load import load_model
from isotest.models.reading import Reading
from isotest.suite import load_suite
from tests.real.test_independent_curves import naive_anisotropy
from tests.real.vit import SUITES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.data.dataset import Dataset
    from isotest.models.loaded import LoadedModel
    from isotest.profile import Profile
    from isotest.suite import ModelSpec, Suite

FILES = (
    "language/tokens",
    "language/characters",
    "language/pretrained",
    "chemistry/pretrained",
    "proteins/pretrained",
    "speech/transformers",
    "vision/transformers",
    "vision/convolution",
)
ENTRIES = [
    pytest.param(suite, spec, id=spec.name)
    for suite in (load_suite(SUITES / f"{name}.toml") for name in FILES)
    for spec in suite.models
    if spec.source.startswith(("init:", "package:"))
]
# Shares of a sample that are used, so that a batch has much padding.
SHARES = (1.0, 0.1, 0.55, 0.3, 0.8, 0.2, 0.45, 0.65)
LENGTH = {"text": 40, "characters": 96}
# A count of bitwise copies: a causal model's first positions are copies of each other only up to
# the rounding of one batch shape.
COUNTS = {"duplicate_share"}
# float32 rounds the forward pass of another batch shape in another way, and depth multiplies it;
# the largest relative difference seen of any statistic was 2e-4.
TOLERANCE = 1e-3


def samples(suite: Suite) -> Dataset:
    """Eight samples cut to different lengths."""
    data = open_data(suite.data.source, modality=suite.modality, samples=8, base=suite.path.parent)
    contents: list[Any] = []
    for sample, share in zip(data, SHARES, strict=True):
        content = sample.content
        if isinstance(content, str):
            content = content[: int(share * 200)]
        elif isinstance(content, Waveform):
            end = int(share * len(content.samples))
            content = Waveform(content.samples[:end], content.rate)
        contents.append(content)
    return as_data(contents, modality=suite.modality)


def loaded_entry(suite: Suite, spec: ModelSpec) -> LoadedModel:
    measure = suite.measure_of(spec)
    length = LENGTH.get(suite.modality, measure.length)
    reading = Reading(measure.tokenizer, "documents", length, measure.decoder)
    return load_model(
        spec.source,
        modality=suite.modality,
        reading=reading,
        config=spec.config,
        base=suite.path.parent,
    )


def measured(loaded: LoadedModel, data: Dataset, suite: Suite, batch_size: int) -> Profile:
    return measure_loaded(
        loaded, data, source="", model="", modality=suite.modality, batch_size=batch_size
    )


def states_of(output: Any, kind: str) -> Mapping[str, torch.Tensor]:
    """Hidden states under the names of the layers, as the libraries document their order."""
    if kind in ("t5", "manta", "whisper"):
        return {
            f"{part}.{'final' if k == len(states) - 1 else k}": state
            for part in ("encoder", "decoder")
            for states in [output[f"{part}_hidden_states"]]
            for k, state in enumerate(states)
        }
    states = output.hidden_states
    if kind == "canine":
        names = [
            *(f"characters.{k}" for k in range(2)),
            *(f"molecules.{k}" for k in range(13)),
            *(f"upsampled.{k}" for k in range(2)),
        ]
        return dict(zip(names, states, strict=True))
    last = "final" if kind in ("gpt2", "llama", "gpt_neox") else str(len(states) - 1)
    return {str(k): state for k, state in enumerate(states[:-1])} | {last: states[-1]}


@pytest.mark.parametrize(("suite", "spec"), ENTRIES)
def test_the_batch_changes_nothing(suite: Suite, spec: ModelSpec) -> None:
    loaded, data = loaded_entry(suite, spec), samples(suite)
    alone, together = (measured(loaded, data, suite, size) for size in (1, 8))
    assert [layer.name for layer in alone.layers] == [layer.name for layer in together.layers]
    for one, all_ in zip(alone.layers, together.layers, strict=True):
        assert one.representations == all_.representations > 0
        for name in one.estimates.keys() - COUNTS:
            a, b = one.estimates[name], all_.estimates[name]
            if a.value is None or b.value is None:  # of flattened maps there is nothing within
                assert a.undefined == b.undefined, (one.name, name)
            else:
                near = pytest.approx(b.value, rel=TOLERANCE, abs=TOLERANCE)
                assert a.value == near, (one.name, name)
    if suite.modality != "vision":  # those are in test_independent_curves
        compare_with_hidden_states(loaded, data, together)


def compare_with_hidden_states(loaded: LoadedModel, data: Dataset, profile: Profile) -> None:
    """A naive script over ``output_hidden_states``, one sequence at a time, without any padding."""
    kind = str(loaded.module.config.model_type)  # type: ignore[union-attr]
    sequences: dict[str, list[np.ndarray[Any, np.dtype[np.float64]]]] = {}
    streams = {layer.name: layer.stream for layer in loaded.layers}
    for piece in loaded.feed.pieces(data, grouped=False):
        inputs = loaded.feed.batch([piece])
        with torch.inference_mode():
            output = loaded.module(**inputs.arguments, output_hidden_states=True)
        for name, state in states_of(output, kind).items():
            kept = torch.ones(state.shape[1], dtype=torch.bool)
            if streams[name] in inputs.positions:
                positions = inputs.positions[streams[name]]
                kept = (positions.valid & ~positions.special)[0]
            elif streams[name] == "blocks":
                kept = output.block_mask[0]
            sequences.setdefault(name, []).append(state[0, kept].to(torch.float64).numpy())
    curve = dict(
        zip((layer.name for layer in profile.layers), profile.curve("anisotropy"), strict=True)
    )
    expected = {name: ragged_anisotropy(rows) for name, rows in sequences.items()}
    # Of stacks that end in a norm the library keeps no state of the last block itself.
    assert len(curve.keys() - expected.keys()) <= 2
    assert {name: curve[name] for name in expected} == pytest.approx(expected, rel=0, abs=1e-4)
    numbers = list(expected.values())
    assert max(numbers) - min(numbers) > 1e-2, "a shift by a layer would go unnoticed"


def ragged_anisotropy(rows: list[np.ndarray[Any, np.dtype[np.float64]]]) -> float:
    """The mean cosine over all pairs of representations from different sequences."""
    total, count = 0.0, 0
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            if i == j:
                continue
            cosines = one @ other.T
            cosines /= np.linalg.norm(one, axis=1)[:, None] * np.linalg.norm(other, axis=1)
            total += float(cosines.sum())
            count += cosines.size
    return total / count


def test_the_naive_scripts_agree() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    assert ragged_anisotropy(list(x)) == pytest.approx(naive_anisotropy(x), abs=1e-12)
