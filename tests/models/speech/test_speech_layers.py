"""Layers of speech models: what the library itself returns, and the stream of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from isotest.data.dataset import Waveform
from isotest.measurement import measure_loaded
from isotest.models import load_model
from tests.models.speech.clips import MODELS, RANDOM, WHISPER, loaded, noise, pieces, sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor

    from isotest.data.dataset import Sample
    from isotest.models import LoadedModel

CLIPS = [Waveform(noise(5000 + 2000 * k, seed=k), 16_000) for k in range(3)]
WAVEFORMS = sorted(set(MODELS) - {"whisper"})


def observed(model: LoadedModel, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Each layer, taken by hooks exactly as the measurement does it."""
    outputs: dict[str, Tensor] = {}
    handles: list[Any] = []

    def note(name: str, value: Tensor) -> None:
        assert name not in outputs
        outputs[name] = value.clone()

    for layer in model.layers:
        part = model.module.get_submodule(layer.path)
        if layer.side == "input":
            handles.append(
                part.register_forward_pre_hook(
                    lambda _module, args, kwargs, layer=layer: note(
                        layer.name, layer.select(args or kwargs)
                    ),
                    with_kwargs=True,
                )
            )
        else:
            handles.append(
                part.register_forward_hook(
                    lambda _module, _args, output, layer=layer: note(
                        layer.name, layer.select(output)
                    )
                )
            )
    with torch.inference_mode():
        model.module(**inputs)
    for handle in handles:
        handle.remove()
    return outputs


def batch(model: LoadedModel) -> Mapping[str, Tensor]:
    """As many of the clips as may share a batch."""
    first, *others = pieces(model, CLIPS)
    together = [piece for piece in others if model.feed.together(first, piece)]
    return model.feed.batch([first, *together]).arguments


@pytest.mark.parametrize("name", WAVEFORMS)
def test_layers_equal_output_hidden_states(name: str) -> None:
    model = loaded(name)
    inputs = batch(model)
    found = observed(model, inputs)
    module: Any = model.module
    with torch.inference_mode():
        output = module(**inputs, output_hidden_states=True)
    assert len(output.hidden_states) == 4
    for k, state in enumerate(output.hidden_states):
        torch.testing.assert_close(found.pop(str(k)), state, rtol=0, atol=0)
    if "layer norm" in name:
        # With stable layer norm a norm follows the blocks, and the library's states stop before it.
        last = found.pop("final")
        torch.testing.assert_close(last, output.last_hidden_state, rtol=0, atol=0)
        assert not torch.allclose(last, output.hidden_states[-1])
    assert not found


def test_whispers_two_stacks_equal_output_hidden_states() -> None:
    model = loaded("whisper")
    inputs = batch(model)
    found = observed(model, inputs)
    module: Any = model.module
    with torch.inference_mode():
        output = module(**inputs, output_hidden_states=True)
    for half, blocks in (("encoder", 2), ("decoder", 3)):
        states = output[f"{half}_hidden_states"]
        assert len(states) == blocks + 1
        for k, state in enumerate(states[:-1]):
            torch.testing.assert_close(found.pop(f"{half}.{k}"), state, rtol=0, atol=0)
        # The library's last entry is behind the final norm; the last block's own is in front of it.
        last, final = found.pop(f"{half}.{blocks}"), found.pop(f"{half}.final")
        torch.testing.assert_close(final, states[-1], rtol=0, atol=0)
        norm = module.get_submodule(f"{half}.layer_norm")
        with torch.inference_mode():
            torch.testing.assert_close(final, norm(last), rtol=0, atol=0)
    assert not found


def test_names_and_streams() -> None:
    assert [(layer.name, layer.stream) for layer in loaded("wav2vec2").layers] == [
        (str(k), "frames") for k in range(4)
    ]
    assert [layer.name for layer in loaded("hubert, layer norm").layers][-2:] == ["3", "final"]
    assert [(layer.name, layer.stream) for layer in loaded("whisper").layers] == [
        *((f"encoder.{k}", "encoder") for k in ("0", "1", "2", "final")),
        *((f"decoder.{k}", "decoder") for k in ("0", "1", "2", "3", "final")),
    ]


class Clips:
    """The clips as a data set."""

    grouped = False

    def __len__(self) -> int:
        return len(CLIPS)

    def __iter__(self) -> Iterator[Sample]:
        return (sample(clip, index) for index, clip in enumerate(CLIPS))

    def describe(self) -> dict[str, str | int | None]:
        return {}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_profile_does_not_depend_on_the_batch(name: str) -> None:
    one, three = (
        measure_loaded(
            loaded(name),
            Clips(),
            source="x",
            model="x",
            modality="speech",
            batch_size=size,
            metrics=["anisotropy", "mean_norm"],
        )
        for size in (1, 3)
    )
    assert [layer.name for layer in one.layers] == [layer.name for layer in three.layers]
    for a, b in zip(one.layers, three.layers, strict=True):
        assert a.representations == b.representations
        for metric, estimate in a.estimates.items():
            assert estimate.value == pytest.approx(b.estimates[metric].value, abs=1e-5, rel=1e-5)
    frames = [1 + (len(clip.samples) - 400) // 320 for clip in CLIPS]
    heard = [-(-len(clip.samples) // 320) for clip in CLIPS]
    counts = {layer.name: layer.representations for layer in one.layers}
    if name == "whisper":
        assert counts["encoder.1"] == sum(heard)
        assert counts["decoder.1"] == 3 * 32  # not the start tokens
    else:
        assert set(counts.values()) == {sum(frames)}


def test_layers_may_be_named() -> None:
    model = load_model(
        "init:whisper",
        modality="speech",
        reading=RANDOM,
        config=WHISPER,
        layers={"first": "encoder.layers.0", "last": "decoder.layer_norm"},
    )
    assert [(layer.name, layer.stream) for layer in model.layers] == [
        ("first", "encoder"),
        ("last", "decoder"),
    ]
