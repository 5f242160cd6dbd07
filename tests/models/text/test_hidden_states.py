"""What is observed of models that read texts is what the libraries themselves return."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.models.text.families import FAMILIES, loaded, observed, pieces, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

# Families whose last entry of hidden_states is after the final norm, and the norm.
NORMS = {"gpt2": "ln_f", "llama": "norm", "gpt_neox": "final_layer_norm"}
ENCODER_DECODER = ("t5", "t5-gated", "byt5", "manta")
TRACKS = ("characters", "molecules", "upsampled")


def numbered(states: Sequence[Tensor], name: str = "", *, norm: bool = False) -> dict[str, Tensor]:
    """``hidden_states`` by layer name: the last one is ``final`` where it is after the norm.

    What the last block yields before that norm has no entry.
    """
    before = f"{name}." if name else ""
    named = {f"{before}{k}": state for k, state in enumerate(states)}
    if norm:
        named[f"{before}final"] = named.pop(f"{before}{len(states) - 1}")
    return named


def returned(name: str, output: Any) -> dict[str, Tensor]:
    """The library's own hidden states under the names of the layers."""
    if name in ENCODER_DECODER:
        return {
            **numbered(output.encoder_hidden_states, "encoder", norm=True),
            **numbered(output.decoder_hidden_states, "decoder", norm=True),
        }
    if name == "bart":  # no norm behind its last blocks
        states = numbered(output.encoder_hidden_states, "encoder")
        return states | numbered(output.decoder_hidden_states, "decoder")
    states = output.hidden_states
    if name.startswith("canine"):
        # The shallow encoders have one layer each: two entries before and two after the molecules.
        parts = (states[:2], states[2:-2], states[-2:])
        return {k: v for t, p in zip(TRACKS, parts, strict=True) for k, v in numbered(p, t).items()}
    return numbered(states, norm=name in NORMS)


@pytest.mark.parametrize("name", FAMILIES)
def test_layers_equal_output_hidden_states(name: str) -> None:
    model = loaded(name)
    sequences = pieces(model, texts(FAMILIES[name]))
    found = observed(model, sequences)
    inputs = {
        key: value.to(getattr(torch, FAMILIES[name].dtype)) if value.is_floating_point() else value
        for key, value in model.feed.batch(sequences).arguments.items()
    }
    with torch.inference_mode():
        output = model.module(**inputs, output_hidden_states=True)
    expected = returned(name, output)

    lasts = {key.replace("final", str(last(expected, key))) for key in expected if "final" in key}
    assert set(found) == set(expected) | lasts
    for layer, states in expected.items():
        recorder = found[layer]
        assert len(recorder.values) == len(states) == len(sequences)
        for value, mask, state in zip(recorder.values, recorder.masks, states, strict=True):
            torch.testing.assert_close(value[mask], state[mask], rtol=0, atol=0)
            assert 0 < mask.sum() <= len(state)
    assert found[next(reversed(found))].values[0].dtype == getattr(torch, FAMILIES[name].dtype)

    # No layer could be mistaken for its neighbour.
    layers = list(found)
    for first, second in pairwise(layers):
        for a, b in zip(found[first].rows, found[second].rows, strict=True):
            if a.shape == b.shape:
                assert (a - b).abs().max() > 0.01 * a.abs().max(), (first, second)


def last(expected: dict[str, Tensor], final: str) -> int:
    """The number of the block whose output the layer ``final`` normalises."""
    before = final.removesuffix("final")
    return sum(key.startswith(before) for key in expected) - 1 if before else len(expected) - 1


@pytest.mark.parametrize("name", [*NORMS, *ENCODER_DECODER])
def test_the_final_layer_is_the_norm_of_the_last_block(name: str) -> None:
    model = loaded(name)
    found = observed(model, pieces(model, texts(FAMILIES[name])))
    halves = {"": NORMS[name]} if name in NORMS else {}
    halves |= {} if halves else {f"{h}.": f"{h}.final_layer_norm" for h in ("encoder", "decoder")}
    for before, path in halves.items():
        blocks = [layer for layer in found if layer.startswith(before) and "final" not in layer]
        norm = model.module.get_submodule(path)
        for raw, normed in zip(found[blocks[-1]].rows, found[f"{before}final"].rows, strict=True):
            torch.testing.assert_close(norm(raw), normed, rtol=1e-12, atol=1e-12)
            assert not torch.allclose(raw, normed, rtol=0.01)


def test_groups_of_shared_layers_run_for_their_layers_in_turn() -> None:
    """Two groups, five layers: three, then two."""
    blocks = loaded("albert-2-groups").layers[1:]
    assert [layer.path[-1] for layer in blocks] == list("00011")
    assert [layer.call for layer in blocks] == [0, 1, 2, 0, 1]
    assert [layer.calls for layer in blocks] == [3, 3, 3, 2, 2]


@pytest.mark.parametrize("tokens", [48, 150])
def test_molecules_are_a_quarter_as_many_as_characters(tokens: int) -> None:
    model = loaded("canine", length=tokens)
    found = observed(model, pieces(model, ["a" * 500]))
    characters = -(-tokens // 4) * 4
    for layer, recorder in found.items():
        expected = characters // 4 if layer.startswith("molecules") else characters
        assert [len(value) for value in recorder.values] == [expected]
