"""A text's numbers do not depend on whom it shares a batch with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from isotest.data.load import as_data
from isotest.measurement import measure_loaded
from tests.models.text.families import FAMILIES, loaded, observed, pieces, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    ("name", "left", "right"),
    [
        ("gpt2", "bare_left", "bare_right"),
        ("llama", "bare_left", "bare_right"),
        ("gpt_neox", "bare_left", "bare_right"),
        ("bert", "around_left", "around"),
        ("roberta", "around_left", "around"),
        ("albert", "around_left", "around"),
        ("t5", "after_left", "after"),
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
        assert on_the_left.flip(0).equal(on_the_right)
