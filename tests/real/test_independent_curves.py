"""Real-size models: the libraries' own hidden states and a naive script give the same curves."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from isotest.data.load import open_data
from isotest.measurement import measure_loaded
from isotest.models.load import load_model
from isotest.suite import load_suite
from tests.feeding import arguments
from tests.real.vit import PHOTOGRAPHS, SUITES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.data.dataset import Dataset
    from isotest.models.loaded import LoadedModel
    from isotest.suite import ModelSpec, Suite

ENTRIES = [
    pytest.param(suite, spec, id=spec.name)
    for suite in (
        load_suite(SUITES / f"vision/{name}.toml") for name in ("transformers", "convolution")
    )
    for spec in suite.models
    if spec.source.startswith("init:")
]
# As the libraries document it: leading special tokens; which layer the first hidden state is (the
# stems of SegFormer, CvT and VAN have none); whose last_hidden_state is a point after all blocks
# (the final norm of ViT and DeiT, the top convolution of EfficientNet): the last hidden state is
# before.
PREFIX = {"vit": 1, "deit": 2, "beit": 1}
FIRST = {"segformer": 1, "cvt": 1, "van": 1}
AFTER = {"vit", "deit", "efficientnet"}
POSITIONS = {"vit", "deit", "beit", "segformer"}

# Both sides run the same float32 forward pass, whose sums may be split between threads in another
# way: about 1e-7 of a value; a mean cosine is between -1 and 1.
TOLERANCE = 1e-6


def naive_anisotropy(images: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """The mean cosine over all pairs of representations from different images, (B, L, D)."""
    total, count = 0.0, 0
    for one, other in permutations(images, 2):
        lengths = np.linalg.norm(one, axis=1)[:, None] * np.linalg.norm(other, axis=1)[None, :]
        cosines = (one @ other.T) / lengths
        total += float(cosines.sum())
        count += cosines.size
    return total / count


def as_representations(
    state: torch.Tensor, prefix: int, positions: bool
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Tokens without special ones; map positions; or one flattened map an image."""
    x = state.to(torch.float64).numpy()
    if not positions:
        return x.reshape(len(x), 1, -1)
    return x[:, prefix:] if x.ndim == 3 else x.reshape(*x.shape[:2], -1).transpose(0, 2, 1)


@pytest.fixture(scope="module")
def photographs() -> Dataset:
    return open_data(PHOTOGRAPHS, samples=4, seed=0)


def measured(loaded: LoadedModel, data: Dataset) -> dict[str, float]:
    profile = measure_loaded(
        loaded, data, source="", model="", batch_size=4, metrics=("anisotropy",)
    )
    curve: dict[str, float] = {}
    for layer in profile.layers:
        value = layer.estimates["anisotropy"].value
        assert value is not None
        curve[layer.name] = value
    return curve


def inputs_of(loaded: LoadedModel, data: Dataset) -> Mapping[str, torch.Tensor]:
    return arguments(loaded, [sample.content for sample in data])


@pytest.mark.parametrize(("suite", "spec"), ENTRIES)
def test_hidden_states_give_the_same_curve(
    suite: Suite, spec: ModelSpec, photographs: Dataset
) -> None:
    loaded = load_model(spec.source, config=spec.config, base=suite.path.parent)
    config: Any = loaded.module.config
    kind = str(config.model_type)
    curve = measured(loaded, photographs)
    with torch.inference_mode():
        output = loaded.module(**inputs_of(loaded, photographs), output_hidden_states=True)
    states = {
        str(number): state for number, state in enumerate(output.hidden_states, FIRST.get(kind, 0))
    }
    if kind in AFTER:
        states["final"] = output.last_hidden_state
    expected = {
        name: naive_anisotropy(as_representations(state, PREFIX.get(kind, 0), kind in POSITIONS))
        for name, state in states.items()
    }
    assert set(curve) - set(expected) == ({"0"} if kind in FIRST else set())
    assert {name: curve[name] for name in expected} == pytest.approx(expected, rel=0, abs=TOLERANCE)
    # A wrong shift by one layer, or the norm taken for the last block, would not go unnoticed.
    numbers = list(expected.values())
    steps = [abs(after - before) for before, after in pairwise(numbers)]
    assert max(steps) > 1000 * TOLERANCE


@pytest.mark.parametrize("name", ["vit_base_patch16_224", "resnet50"])
def test_timms_intermediates_give_the_same_curve(name: str, photographs: Dataset) -> None:
    loaded = load_model(f"timm:{name}?pretrained=false&seed=0")
    curve = measured(loaded, photographs)
    (x,) = inputs_of(loaded, photographs).values()
    module: Any = loaded.module
    tokens = name.startswith("vit")
    with torch.inference_mode():
        final, features = module.forward_intermediates(x)  # maps (B, C, H, W), no special tokens
    # A ViT yields its blocks; a ResNet its stem first.
    states = {str(number): state for number, state in enumerate(features, 1 if tokens else 0)}
    expected = {
        layer: naive_anisotropy(as_representations(state, 0, tokens))
        for layer, state in states.items()
    }
    if tokens:
        expected["final"] = naive_anisotropy(as_representations(final, 1, True))
    assert set(curve) - set(expected) == ({"0"} if tokens else set())
    assert {key: curve[key] for key in expected} == pytest.approx(expected, rel=0, abs=TOLERANCE)
