"""Each property of attention is violated by what breaks it, and holds of what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from isotest.testing.properties.attention import ATTENTION_PROPERTIES
from isotest.testing.properties.seen import attentions
from isotest.testing.property import Property, ViolationError
from isotest.testing.subject import Claims, Subject
from isotest.testing.token_batch import KINDS, TokenBatch
from tests.testing import broken_attention as broken
from tests.testing.attention_forms import (
    FORMS,
    HEADS,
    NO_ATTENTION,
    WIDTH,
    Form,
    Fused,
    InferenceMode,
    LinearAttention,
    Rotary,
    RotaryHalves,
    SharedKeys,
    SharedKeysFused,
    Sink,
)

PROPERTIES = {property_.name: property_ for property_ in ATTENTION_PROPERTIES}
BATCHES = (
    TokenBatch(1, 2, WIDTH),
    TokenBatch(1, 1, WIDTH),
    *(TokenBatch(2, 5, WIDTH, seed=1, kind=kind) for kind in KINDS),
    TokenBatch(3, 9, WIDTH, seed=2, scale=3.0),
    TokenBatch(2, 4, WIDTH, seed=3, scale=0.1),
)


def subject_of(form: type[Form]) -> Subject:
    masked = issubclass(form, broken.Masking)
    claims = Claims(
        causal=False, normalised=False, skip=False, positions=False, masked=masked, scaled=True
    )
    return Subject(form().eval(), form.__name__, WIDTH, HEADS, claims)


def outcome(property_: Property, form: type[Form]) -> str:
    """ "holds", the text of the violation, or why it does not apply."""
    subject = subject_of(form)
    reason = property_.excludes(subject)
    if reason is not None:
        return f"not applicable: {reason}"
    for batch in BATCHES:
        try:
            property_.check(subject, batch)
        except ViolationError as error:
            return f"violated: {error}"
    return "holds"


VIOLATIONS = (
    ("softmax_rows", broken.WrongAxis, "not to 1"),
    ("softmax_rows", broken.NotDivided, "not to 1"),
    ("softmax_rows", broken.SelfLeftOut, "not to 1"),
    ("softmax_rows", broken.HalfWeights, "not to 1"),
    ("softmax_rows", broken.SumsToOneWithNegatives, "below 0"),
    ("softmax_rows", broken.MaskAfterwards, "not to 1"),
    ("attention_scale", broken.ScaleForgotten, "q·k times 1, not times 1/√d_k = 0.5"),
    ("attention_scale", broken.ScaleOfTheWholeWidth, "q·k times 0.3536, not times"),
    ("attention_scale", broken.ScaledTwice, "q·k times 0.25, not times"),
    ("attention_scale", broken.FusedScaleOfOne, "q·k times 1, not times"),
    ("convex_hull", broken.SumsToOneWithNegatives, "those of the values lie in"),
    ("convex_hull", broken.ValuesAddedTwice, "those of the values lie in"),
    ("key_shift", broken.ScoresClamped, "a shift that all keys have in common"),
    ("key_shift", broken.SoftmaxOffByOne, "a shift that all keys have in common"),
    ("expectation", broken.QueriesSquashed, "does not shift all queries alike"),
    ("expectation", broken.KeysClipped, "does not shift all keys alike"),
    ("expectation", broken.KeysInBfloat16, "does not shift all keys alike"),
    ("rotation_equivariance", broken.ReadsACoordinate, "one rotation of the queries and keys"),
    ("masked_keys", broken.MaskIgnored, "moves the outputs of the others"),
    ("masked_keys", broken.MaskTooWeak, "moves the outputs of the others"),
    ("masked_keys", broken.MaskAfterwards, "moves the outputs of the others"),
    ("masked_keys", broken.QueriesMasked, "moves the outputs of the others"),
    ("masked_keys", broken.GradientLeaks, "have a gradient of"),
)


@pytest.mark.parametrize(("name", "form", "text"), VIOLATIONS)
def test_what_breaks_a_property_is_caught(name: str, form: type[Form], text: str) -> None:
    said = outcome(PROPERTIES[name], form)
    assert said.startswith("violated: ")
    assert text in said


def test_each_property_has_something_that_breaks_it() -> None:
    assert {name for name, _, _ in VIOLATIONS} == set(PROPERTIES)


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize(
    "form", [*FORMS, SharedKeys, SharedKeysFused, broken.Masking, broken.Biased]
)
def test_healthy_attention_has_every_property(name: str, form: type[Form]) -> None:
    said = outcome(PROPERTIES[name], form)
    if name == "masked_keys" and form is not broken.Masking:
        assert said == "not applicable: it takes no mask"
    else:
        assert said == "holds"


NOT_APPLICABLE = (
    *((name, form, "no attention is recognised") for form in NO_ATTENTION for name in PROPERTIES),
    ("softmax_rows", Sink, "a sink"),
    ("convex_hull", Sink, "a sink"),
    ("key_shift", Sink, "a sink"),
    ("key_shift", Rotary, "rotated by position"),
    ("key_shift", RotaryHalves, "rotated by position"),
    ("rotation_equivariance", Rotary, "rotated by position"),
    ("rotation_equivariance", RotaryHalves, "rotated by position"),
    ("key_shift", broken.CosineAttention, "normalised"),
    ("rotation_equivariance", broken.CosineAttention, "normalised"),
    ("attention_scale", broken.CosineAttention, "no projections"),
    ("attention_scale", broken.SoftCapped, "no multiple of q·k"),
    ("expectation", broken.NormalisedFirst, "a norm, comes between"),
    ("expectation", broken.CosineAttention, "a norm, comes between"),
    ("key_shift", broken.KeysAreQueries, "share a projection with queries"),
    ("key_shift", broken.KeysAreValues, "share a projection with queries or values"),
    ("rotation_equivariance", broken.KeysAreValues, "share a projection with values"),
)


@pytest.mark.parametrize(("name", "form", "text"), NOT_APPLICABLE)
def test_what_cannot_be_demanded_is_not_passed_in_silence(
    name: str, form: type[Form], text: str
) -> None:
    said = outcome(PROPERTIES[name], form)
    if name == "masked_keys":
        assert said == "not applicable: it takes no mask"
        return
    assert said.startswith("not applicable: ")
    assert text in said


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("attention_scale", Sink),
        ("attention_scale", Rotary),
        ("attention_scale", RotaryHalves),
        ("attention_scale", broken.NormalisedFirst),
        ("attention_scale", broken.KeysAreValues),
        ("expectation", Sink),
        ("expectation", Rotary),
        ("expectation", RotaryHalves),
        ("rotation_equivariance", broken.KeysAreQueries),
        ("rotation_equivariance", Sink),
        ("rotation_equivariance", broken.SoftCapped),
        ("convex_hull", Rotary),
    ],
)
def test_conditions_exclude_no_more_than_they_must(name: str, form: type[Form]) -> None:
    assert outcome(PROPERTIES[name], form) == "holds"


class TwoLayers(Form):
    """One attention after the other; the second one may be broken."""

    second: type[Form] = Form

    def __init__(self) -> None:
        super().__init__()
        self.then = self.second(seed=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.then(super().forward(x))
        return output


@pytest.mark.parametrize("name", [name for name in PROPERTIES if name != "masked_keys"])
def test_every_attention_of_a_block_is_tried(name: str) -> None:
    assert outcome(PROPERTIES[name], TwoLayers) == "holds"
    form = next(form for broken_name, form, _ in VIOLATIONS if broken_name == name)
    if name == "expectation":
        # Only the first attention gets the block's own input.
        return
    assert outcome(PROPERTIES[name], type("Broken", (TwoLayers,), {"second": form})).startswith(
        "violated: "
    )


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_what_torch_lets_nobody_watch_is_not_passed_in_silence() -> None:
    class Flex(Form):
        def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            from torch.nn.attention.flex_attention import flex_attention

            output = flex_attention(q, k, v)
            assert isinstance(output, torch.Tensor)
            return output

    said = outcome(PROPERTIES["softmax_rows"], Flex)
    assert said.startswith("not applicable: its operations cannot be watched (NotImplementedError")


def test_a_block_that_says_it_does_not_scale_is_not_held_to_it() -> None:
    subject = subject_of(broken.FusedScaleOfOne)
    subject = replace(subject, claims=replace(subject.claims, scaled=False))
    reason = PROPERTIES["attention_scale"].excludes(subject)
    assert reason == "its scores are not said to be divided by √d_k"


def test_dropout_left_on_is_not_taken_for_a_violation() -> None:
    """What interventions compare is two passes; it is `deterministic` that names this."""

    class DropoutLeftOn(Form):
        def weigh(self, scores: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.dropout(scores.softmax(-1), 0.5)

    said = outcome(PROPERTIES["key_shift"], DropoutLeftOn)
    assert said.startswith("not applicable: what it computes differs from one pass to the next")


def test_attention_that_vanishes_on_some_inputs_is_no_pass() -> None:
    class Fickle(Form):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.shape[1] == 2 else super().forward(x)

    said = outcome(PROPERTIES["softmax_rows"], Fickle)
    assert said.startswith("violated: no attention is recognised on an input of 1 × 2 tokens")


def test_the_output_is_compared_with_what_the_recorder_understood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If torch's fused attention meant something else by its arguments, that would show."""
    (seen,) = attentions(subject_of(Fused), BATCHES[-1].tensor())
    wrong = replace(seen, output=seen.output + 1e-4)
    monkeypatch.setattr("isotest.testing.properties.weights.attentions", lambda *_: (wrong,))
    said = outcome(PROPERTIES["softmax_rows"], Fused)
    assert said.startswith("violated: the attention's output is 0.0001 away from its weights times")


@pytest.mark.parametrize("property_", ATTENTION_PROPERTIES, ids=lambda p: p.name)
def test_source_and_conditions_are_said_in_words(property_: Property) -> None:
    for text in (property_.statement, property_.source, property_.conditions):
        assert text.endswith(".")


def test_each_form_is_in_eval_mode_and_deterministic() -> None:
    """Otherwise what they are tried for would not be what is meant."""
    for form in (*FORMS, LinearAttention, InferenceMode):
        subject = subject_of(form)
        x = TokenBatch(2, 5, WIDTH).tensor()
        assert torch.equal(subject.run(x), subject.run(x))
