"""Attention in profiles: values where there is some, reasons where there is none, never zeros."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn
from transformers import Gemma2Config, Gemma2Model, GptOssConfig, GptOssModel, ViTModel

from isotest.errors import BaselineError
from isotest.gate.checks import MetricCheck, Regression
from isotest.gate.verdict import Outcome
from isotest.measurement import measure, measure_loaded
from isotest.models import load_model
from isotest.models.attention import registry
from isotest.models.attention.call import AttentionCall, NotObservable
from isotest.models.attention.interface import observer
from isotest.profile_json import dump_profile, load_profile
from isotest.statistics.attention.histogram import BINS
from tests.gate.profiles import judge
from tests.models.attention.families import loaded
from tests.models.attention.witness import loaded as as_loaded
from tests.models.attention.witness import probabilities
from tests.models.test_hidden_states import images
from tests.models.tiny import TRANSFORMERS, VIT

if TYPE_CHECKING:
    from isotest.estimate import Estimate
    from isotest.gate.verdict import Verdict
    from isotest.profile import Profile

METRICS = ["anisotropy", "attention_entropy", "cross_attention_entropy"]
RISE = MetricCheck(metric="attention_entropy", baseline=Regression(), inconclusive="pass")
LIMIT = MetricCheck(metric="attention_entropy", min=0.0, inconclusive="pass")


def profile_of(name: str, count: int = 8, **options: Any) -> Profile:
    model = load_model(f"init:{name}?seed=0", config=TRANSFORMERS[name])
    return of_images(model, count, **options)


def of_images(model: Any, count: int = 8, **options: Any) -> Profile:
    from isotest.data.load import as_data

    data = as_data(images(count), "vision")
    settings = {"source": "s", "model": "m", "metrics": METRICS, **options}
    return measure_loaded(model, data, **settings)


def green(verdict: Verdict) -> bool:
    return verdict.outcome is Outcome.PASSED or verdict.allowed


def earlier(profile: Profile) -> Profile:
    """The same, as a baseline."""
    past = replace(profile.provenance, created="2026-01-01T00:00:00+00:00")
    return replace(profile, provenance=past)


def entropies(profile: Profile, prefix: str = "") -> dict[str, Estimate]:
    return {layer.name: layer.estimates[f"{prefix}attention_entropy"] for layer in profile.layers}


def test_layers_without_attention_say_so_and_the_others_are_judged() -> None:
    profile = profile_of("vit")
    found = entropies(profile)
    for name in ("0", "final"):
        assert found[name].undefined == "no attention at this layer"
        assert found[name].vacuous
    for name in ("1", "2", "3"):
        assert found[name].value == pytest.approx(1, abs=0.05)
        assert len(found[name].blocks) == 8
        assert found[name].isotropic == 1
    for estimate in entropies(profile, "cross_").values():
        assert estimate.undefined == "no cross-attention at this layer"
        assert estimate.vacuous
    assert judge(profile, earlier(profile), RISE).outcome is Outcome.PASSED
    assert judge(profile, None, LIMIT).outcome is Outcome.PASSED
    collapsed = MetricCheck(metric="attention_entropy", max=0.5)
    assert judge(profile, None, collapsed).outcome is Outcome.FAILED


@pytest.mark.parametrize("check", [RISE, LIMIT])
def test_a_check_on_a_model_without_attention_is_red(check: MetricCheck) -> None:
    profile = profile_of("resnet")
    assert all(estimate.vacuous for estimate in entropies(profile).values())
    verdict = judge(profile, earlier(profile), check)
    assert not green(verdict)
    assert verdict.compared == 0
    assert "undefined at every selected layer" in verdict.headline


@pytest.mark.parametrize("check", [RISE, LIMIT])
def test_a_check_on_attention_that_cannot_be_observed_is_red(
    check: MetricCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_ROWS", ())
    profile = profile_of("vit")
    found = entropies(profile)
    assert len(found) == 5
    for estimate in found.values():
        assert not estimate.vacuous
        assert estimate.undefined == (
            "not observable: nothing is known of how ViTModel computes attention"
        )
    assert all(not layer.attention for layer in profile.layers)
    assert not green(judge(profile, earlier(profile), check))


class OwnAttention(nn.Module):
    """Calls no interface."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(32, 32)

    def forward(self, hidden_states: Any, *_args: Any, **_kwargs: Any) -> Any:
        return self.linear(hidden_states), None


def test_only_the_layer_with_a_module_of_its_own_is_not_observable() -> None:
    model = load_model("init:vit?seed=0", config=VIT)
    module: Any = model.module
    assert isinstance(module, ViTModel)
    module.layers[1].attention = OwnAttention()
    found = entropies(of_images(model))
    assert [name for name, estimate in found.items() if estimate.value is not None] == ["1", "3"]
    assert found["2"].undefined == (
        "not observable: layers.1.attention: OwnAttention computes it in its own way"
    )
    assert not found["2"].vacuous


def test_a_module_that_goes_another_way_this_time_is_not_observable() -> None:
    model = load_model("init:vit?seed=0", config=VIT)
    module: Any = model.module
    attention = module.layers[1].attention

    def shortcut(hidden_states: Any, *_args: Any, **_kwargs: Any) -> Any:
        return hidden_states, None

    attention.forward = shortcut
    found = entropies(of_images(model))
    assert found["2"].undefined == (
        "not observable: layers.1.attention: ViTAttention did not use the attention interface "
        "this time"
    )
    assert found["1"].value is not None


def test_nothing_is_attached_where_no_metric_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_loaded: object) -> None:
        raise AssertionError("attached")

    monkeypatch.setattr(registry, "observer_of", refuse)
    profile = profile_of("vit", metrics=["anisotropy"])
    assert all(not layer.attention for layer in profile.layers)
    with pytest.raises(AssertionError, match="attached"):
        profile_of("vit")


def test_heads_and_histograms_survive_a_file() -> None:
    from isotest.data.load import as_data
    from tests.models.text.families import FAMILIES, texts

    model = loaded("t5")
    data = as_data(texts(FAMILIES["t5"]), "text")
    profile = measure_loaded(model, data, source="s", model="m", modality="text", metrics=METRICS)
    assert load_profile(dump_profile(profile, "p")) == profile
    kinds = {layer.name: set(layer.attention) for layer in profile.layers}
    assert kinds["encoder.0"] == kinds["decoder.final"] == set()
    assert kinds["encoder.2"] == {"self"}
    assert kinds["decoder.2"] == {"self", "cross"}
    own = profile.layers[1].attention["self"]
    assert own.modules == (("encoder.block.0.layer.0.SelfAttention", 4),)
    assert (len(own.entropy), len(own.row_max), len(own.histogram)) == (4, 4, BINS)
    mean = profile.layers[1].estimates["attention_entropy"].value
    assert sum(value or 0 for value in own.entropy) / 4 == pytest.approx(mean)


def test_files_with_heads_that_contradict_each_other_are_refused() -> None:
    profile = profile_of("vit")
    layer = profile.layers[1]
    heads = layer.attention["self"]
    for broken in (
        replace(heads, row_max=heads.row_max[1:]),
        replace(heads, histogram=heads.histogram[1:]),
        replace(heads, entropy=(1.5, *heads.entropy[1:])),
        replace(heads, entropy=(float("nan"), *heads.entropy[1:])),
    ):
        changed = replace(layer, attention={"self": broken})
        layers = (profile.layers[0], changed, *profile.layers[2:])
        with pytest.raises(BaselineError):
            dump_profile(replace(profile, layers=layers), "p")


def test_profiles_without_attention_are_written_as_before() -> None:
    content = dump_profile(profile_of("vit", metrics=["anisotropy"]), "p")
    assert b'"attention"' not in content


def test_it_works_from_python_with_a_module_and_gives_it_back() -> None:
    module = ViTModel(load_model("init:vit?seed=0", config=VIT).module.config)  # type: ignore[arg-type]
    module.train()
    profile = measure(module, images(3), metrics=["attention_row_max"])
    assert profile.curve("attention_row_max")[1] == pytest.approx(1 / 17, rel=0.1)
    assert module.training


SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "vocab_size": 50,
    "sliding_window": 3,
    "pad_token_id": 0,
}


def seen_of(module: Any, **arguments: Any) -> tuple[list[Any], Any]:
    model = as_loaded(module)
    seen: list[Any] = []
    watching = observer(model)
    assert watching is not None
    assert not isinstance(watching, NotObservable)
    with torch.inference_mode(), watching.observed(model, lambda _path, call: seen.append(call)):
        output = module(torch.arange(8)[None] + 1, **arguments)
    return seen, output


def test_caps_and_sliding_windows() -> None:
    torch.manual_seed(0)
    config = Gemma2Config(**SMALL, attn_logit_softcapping=0.01, query_pre_attn_scalar=4)
    config._attn_implementation = "eager"
    (call,), output = seen_of(Gemma2Model(config), output_attentions=True)
    assert isinstance(call, AttentionCall)
    assert call.softcap == 0.01
    assert call.allowed is not None
    near = torch.ones(8, 8, dtype=torch.bool)
    assert torch.equal(call.allowed[0, 0], near.tril() & near.triu(-2))
    scores = call.scale * call.query @ call.key.repeat_interleave(2, 1).mT
    capped = 0.01 * torch.tanh(scores / 0.01)
    weights = capped.masked_fill(~call.allowed, -torch.inf).softmax(-1)
    torch.testing.assert_close(weights, output.attentions[0])
    assert not torch.allclose(probabilities(call), weights, atol=1e-6)


def test_sinks_are_not_observable() -> None:
    config = GptOssConfig(**SMALL, num_local_experts=2, num_experts_per_tok=1)
    config._attn_implementation = "eager"
    (call,), _ = seen_of(GptOssModel(config))
    assert call == NotObservable("it has sinks, which take part in the softmax and are no keys")


def test_what_may_change_scores_in_an_unknown_way_is_not_observable() -> None:
    from transformers import BertConfig, BertModel

    sizes = {key: SMALL[key] for key in ("hidden_size", "num_hidden_layers", "vocab_size")}
    module: Any = BertModel(BertConfig(**sizes, num_attention_heads=4, intermediate_size=16))
    own = module.encoder.layer[0].attention.self
    plain = own.forward
    own.forward = lambda *args, **kwargs: plain(*args, **kwargs, tilt=torch.ones(1))
    (call,), _ = seen_of(module)
    assert call == NotObservable("its function takes 'tilt', which may change the scores")


def test_other_implementations_are_not_observable(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.modeling_utils import AttentionInterface

    model = load_model("init:vit?seed=0", config=VIT)
    module: Any = model.module
    mapping = AttentionInterface._global_mapping
    monkeypatch.setitem(mapping, "another", sdpa_attention_forward)
    module.config._attn_implementation_internal = "another"
    found = entropies(of_images(model))
    assert found["1"].undefined == (
        "not observable: layers.0.attention: of implementation 'another'; use attn_implementation "
        "'sdpa'"
    )
