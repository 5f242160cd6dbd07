"""A text's numbers do not depend on whom it shares a batch with."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from isotest.data.load import as_data
from isotest.errors import SourceError
from isotest.measurement import measure_loaded
from isotest.models.load import borrow_module, load_model
from isotest.models.reading import Reading
from tests.models.text.families import BERT, FAMILIES, loaded, observed, pieces, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from isotest.models.loaded import Inputs, LoadedModel, Piece
    from isotest.observation import SpecialTokens
    from tests.models.text.families import Recorder

CODE = "python:tests.models.text.vocabularies:"


def apart(one: dict[str, Recorder], other: dict[str, Recorder]) -> float:
    """The largest distance of two observations of the same texts, relative to each sequence's."""
    assert list(one) == list(other)
    worst = 0.0
    for layer, recorder in one.items():
        for a, b in zip(recorder.rows, other[layer].rows, strict=True):
            assert a.shape == b.shape
            assert len(a)
            worst = max(worst, float((a - b).abs().max() / b.abs().max()))
    return worst


@pytest.mark.parametrize("name", FAMILIES)
def test_alone_as_in_a_padded_batch(name: str) -> None:
    model = loaded(name)
    sequences = pieces(model, texts(FAMILIES[name]))
    lengths = [len(sequence.content) for sequence in sequences]
    assert max(lengths) == FAMILIES[name].length
    assert min(lengths) <= FAMILIES[name].shortest + 2
    for special in ("include", "exclude"):
        batched = observed(model, sequences, special_tokens=special)
        alone = observed(model, sequences, batch_size=1, special_tokens=special)
        assert apart(batched, alone) < FAMILIES[name].tolerance


@pytest.mark.parametrize("special_tokens", ["include", "exclude"])
@pytest.mark.parametrize("name", FAMILIES)
def test_estimates_are_those_of_single_texts(name: str, special_tokens: SpecialTokens) -> None:
    family = FAMILIES[name]
    model = loaded(name)
    data = as_data(texts(family), "text")
    one, eight = (
        measure_loaded(
            model,
            data,
            source="",
            model=name,
            modality="text",
            batch_size=size,
            special_tokens=special_tokens,
        )
        for size in (1, 8)
    )
    assert one.sequences == eight.sequences == 8
    for a, b in zip(one.layers, eight.layers, strict=True):
        assert (a.name, a.representations) == (b.name, b.representations)
        assert a.representations >= 8
        for metric, estimate in a.estimates.items():
            # Copies are counted bit by bit. Where equal inputs give equal vectors (CLS at layer 0,
            # the first positions of a causal model) and a matrix product made them, whether their
            # last bits agree depends on the shape of each one's batch.
            if metric == "duplicate_share":
                continue
            other = b.estimates[metric]
            close: dict[str, Any] = {"rel": family.tolerance * 100, "abs": family.tolerance * 10}
            assert estimate.value == pytest.approx(other.value, **close, nan_ok=True), metric
            assert estimate.se == pytest.approx(other.se, **close, nan_ok=True), metric


class Unmasked:
    """A feed that forgets what a model must be told of padding."""

    def __init__(self, model: LoadedModel, argument: str) -> None:
        self._feed = model.feed
        self._argument = argument

    def batch(self, sequences: Sequence[Piece]) -> Inputs:
        inputs = self._feed.batch(sequences)
        arguments = dict(inputs.arguments)
        arguments[self._argument] = (
            torch.arange(arguments["input_ids"].shape[1]).expand_as(arguments["input_ids"])
            if self._argument == "position_ids"
            else torch.ones_like(arguments[self._argument])
        )
        return replace(inputs, arguments=arguments)


@pytest.mark.parametrize(
    ("name", "argument", "tokenizer"),
    [
        ("bert", "attention_mask", "sample:tokenizer"),
        ("albert", "attention_mask", "sample:tokenizer"),
        ("xlnet", "attention_mask", "sample:tokenizer"),
        ("t5", "attention_mask", "sample:tokenizer"),
        ("canine", "attention_mask", None),
        ("character_bert", "attention_mask", None),
        ("gpt2", "attention_mask", f"{CODE}bare_left"),
        ("gpt2", "position_ids", f"{CODE}bare_left"),
        ("roberta", "position_ids", f"{CODE}around_left"),
    ],
)
def test_it_would_show_if_a_model_read_its_padding(
    name: str, argument: str, tokenizer: str | None
) -> None:
    model = loaded(name, tokenizer=tokenizer)
    sequences = pieces(model, texts(FAMILIES[name]))
    forgetful: Any = Unmasked(model, argument)
    batched = observed(replace(model, feed=forgetful), sequences)
    assert apart(batched, observed(model, sequences, batch_size=1)) > 0.01


@pytest.mark.parametrize(
    ("model_type", "config"),
    [
        # Fourier transforms over all positions; convolutions over padding.
        ("fnet", {key: BERT[key] for key in BERT if key != "num_attention_heads"}),
        ("convbert", {**BERT, "embedding_size": 32}),
    ],
)
def test_a_model_that_reads_padding_is_refused(model_type: str, config: dict[str, Any]) -> None:
    reading = Reading(f"{CODE}around", "documents", 32)
    source = f"init:{model_type}"
    with pytest.raises(SourceError) as caught:
        load_model(source, modality="text", reading=reading, config=config)
    assert re.fullmatch(
        rf"source '{source}': \w+Model reads padding: what it makes of a text alone and of the "
        r"same text padded in a batch are \d+% apart, so its numbers would depend on the batch; "
        r"use packing = 'windows' in \[measure\], where nothing is padded",
        str(caught.value),
    )
    windows = replace(reading, packing="windows")
    model = load_model(source, modality="text", reading=windows, config=config, dtype="float64")
    sequences = pieces(model, texts(FAMILIES["bert"]))
    assert len(sequences) > 3
    alone = observed(model, sequences, batch_size=1)
    assert apart(observed(model, sequences), alone) < 1e-9


class Recurrent(nn.Module):
    """Reads ids and nothing else, in one direction or both."""

    def __init__(self, *, both: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(92, 8)
        self.blocks = nn.ModuleList(
            nn.LSTM(width, 8, batch_first=True, bidirectional=both)
            for width in ((8, 16, 16) if both else (8, 8, 8))
        )

    def forward(self, input_ids: Tensor) -> Tensor:
        x: Tensor = self.embedding(input_ids)
        for block in self.blocks:
            x, _ = block(x)
        return x


@pytest.mark.parametrize("both", [False, True])
def test_a_model_without_a_mask_is_fine_if_it_needs_none(both: bool) -> None:
    layers = {"0": "embedding", "1": "blocks.0", "2": "blocks.1"}
    reading = Reading(f"{CODE}around", "documents", 32)
    torch.manual_seed(0)
    module = Recurrent(both=both).double()
    if both:
        with (
            pytest.raises(SourceError, match="Recurrent reads padding: "),
            borrow_module(module, modality="text", reading=reading, layers=layers),
        ):
            pass
        return
    with borrow_module(module, modality="text", reading=reading, layers=layers) as model:
        sequences = pieces(model, texts(FAMILIES["bert"]))
        assert apart(observed(model, sequences), observed(model, sequences, batch_size=1)) < 1e-9


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("gpt2", "bare_left", "bare_right"),
        ("llama", "bare_left", "bare_right"),
        ("gpt_neox", "bare_left", "bare_right"),
        ("bert", "around_left", "around"),
        ("roberta", "around_left", "around"),
        ("albert", "around_left", "around"),
        ("t5", "after_left", "after"),
        ("bart", "around_left", "around"),
        ("xlnet", "after_left", "after"),
    ],
)
def test_padding_on_the_left_as_on_the_right(name: str, left: str, right: str) -> None:
    models = [loaded(name, tokenizer=f"{CODE}{side}") for side in (left, right)]
    contents = texts(FAMILIES[name])
    sides = [observed(model, pieces(model, contents)) for model in models]
    alone = observed(models[0], pieces(models[0], contents), batch_size=1)
    assert apart(*sides) < FAMILIES[name].tolerance
    assert apart(sides[0], alone) < FAMILIES[name].tolerance
    masks = [side[models[0].layers[0].name].masks for side in sides]
    for on_the_left, on_the_right in zip(*masks, strict=True):
        # Encoder-decoder models cannot be told positions and are padded on the right always.
        assert (on_the_left if name in ("t5", "bart") else on_the_left.flip(0)).equal(on_the_right)
