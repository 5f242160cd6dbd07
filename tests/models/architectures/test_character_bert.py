"""CharacterBERT against its paper, against BERT, and against what was published of it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel, BertConfig, BertModel

from isotest.errors import SourceError
from isotest.models.architecture import architecture, weights_fingerprint
from isotest.models.architectures import register
from isotest.models.architectures.character_bert import word_ids
from isotest.models.architectures.character_bert.configuration import CharacterBertConfig
from isotest.models.architectures.character_bert.model import CharacterBertModel
from isotest.models.architectures.character_bert.network import CharacterCnn, Highway
from isotest.models.layers import observe
from isotest.models.loaded import Inputs
from isotest.models.registry import Request, build
from isotest.models.seeding import seeded
from isotest.source import MODEL_SCHEMES, parse_source
from tests.models.architectures.naive_character_bert import arrays, naive_highway, naive_word

if TYPE_CHECKING:
    from pathlib import Path

TINY: dict[str, Any] = {
    "cnn_filters": [[1, 4], [2, 4], [3, 8]],
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 16,
}
SENTENCE = ["[CLS]", "an", "unheard-of", "naïveté", "!", "[SEP]"]


@pytest.fixture(autouse=True)
def registered() -> None:
    register("character_bert")


def tiny(seed: int = 0, **config: Any) -> CharacterBertModel:
    with seeded(seed):
        model = CharacterBertModel(CharacterBertConfig(**{**TINY, **config}))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)  # no norm or bias is idle
    model.eval()  # type: ignore[no-untyped-call]
    return model


def ids_of(*sentences: list[str]) -> torch.Tensor:
    return torch.stack([torch.from_numpy(word_ids(words)) for words in sentences])


def built(source: str, base: Path, **config: Any) -> torch.nn.Module:
    return build(Request(parse_source(source, MODEL_SCHEMES), config, base)).module


def test_highway_layers_are_the_papers() -> None:
    with seeded(0):
        highway = Highway(5, 2).double()
        x = torch.randn(3, 2, 5, dtype=torch.float64)
    found = highway(x).detach().numpy()
    state = arrays(highway)
    for index in np.ndindex(3, 2):
        expected = x[index].numpy()
        for k in range(2):
            expected = naive_highway(
                expected, state[f"_layers.{k}.weight"], state[f"_layers.{k}.bias"]
            )
        np.testing.assert_allclose(found[index], expected, rtol=1e-12)


@pytest.mark.parametrize("size", ["tiny", "real"])
def test_words_vectors_are_the_papers(size: str) -> None:
    config = CharacterBertConfig(**(TINY if size == "tiny" else {}))
    with seeded(0):
        network = CharacterCnn(config).double()
        torch.nn.init.normal_(network._char_embedding_weights)
    ids = ids_of(["word", "[PAD]"] if size == "real" else [*SENTENCE, "[PAD]", "x" * 60])
    found = network(ids).detach().numpy()
    for word, vector in zip(ids[0].tolist(), found[0], strict=True):
        np.testing.assert_allclose(
            vector, naive_word(word, arrays(network), config), rtol=1e-10, atol=1e-12
        )


def test_the_embedding_output_is_berts_sum_and_norm() -> None:
    model = tiny().double()
    ids, types = ids_of(SENTENCE), torch.tensor([[0, 0, 0, 1, 1, 1]])
    state = arrays(model.embeddings)
    with torch.no_grad():
        words = model.embeddings.word_embeddings(ids)[0].numpy()
        found = model.embeddings(ids, token_type_ids=types)[0].numpy()
    for position, (word, kind) in enumerate(zip(words, types[0].tolist(), strict=True)):
        total = (
            word
            + state["position_embeddings.weight"][position]
            + state["token_type_embeddings.weight"][kind]
        )
        centred = total - total.mean()
        normal = centred / math.sqrt((centred**2).mean() + 1e-12)
        expected = normal * state["LayerNorm.weight"] + state["LayerNorm.bias"]
        np.testing.assert_allclose(found[position], expected, rtol=1e-10)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_behind_the_words_it_is_bert(attention: str) -> None:
    model = tiny(attn_implementation=attention)
    shared = {key: value for key, value in TINY.items() if key != "cnn_filters"}
    config: Any = {**shared, "vocab_size": 7, "attn_implementation": attention}
    bert = BertModel(BertConfig(**config))
    bert.eval()
    words = "embeddings.word_embeddings."
    theirs = {k: v for k, v in model.state_dict().items() if not k.startswith(words)}
    missing, surplus = bert.load_state_dict(theirs, strict=False)
    assert missing == [f"{words}weight"]
    assert surplus == []
    ids = ids_of(SENTENCE, [*SENTENCE[:4], "[PAD]", "[PAD]"])
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
    with torch.no_grad():
        found = model(ids, attention_mask=mask, output_hidden_states=True)
        vectors = model.embeddings.word_embeddings(ids)
        expected = bert(inputs_embeds=vectors, attention_mask=mask, output_hidden_states=True)
    assert torch.equal(found.pooler_output, expected.pooler_output)
    assert len(found.hidden_states) == 4
    for ours, other in zip(found.hidden_states, expected.hidden_states, strict=True):
        assert torch.equal(ours, other)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_sequence_is_the_same_alone_and_padded(attention: str) -> None:
    model = tiny(attn_implementation=attention)
    longer = [*SENTENCE, "and", "more", "of", "it"]
    ids = ids_of(longer, SENTENCE + ["[PAD]"] * 4)
    mask = (ids[:, :, 0] != 0).long()
    with torch.no_grad():
        alone = model(ids_of(SENTENCE), output_hidden_states=True).hidden_states
        padded = model(ids, attention_mask=mask, output_hidden_states=True).hidden_states
        unmasked = model(ids).last_hidden_state
    for one, both in zip(alone, padded, strict=True):
        torch.testing.assert_close(one[0], both[1, : len(SENTENCE)], rtol=1e-5, atol=1e-5)
    # Without the mask it is not: the comparison can fail.
    assert (unmasked[1, : len(SENTENCE)] - alone[-1][0]).abs().max() > 1e-3


@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 49), (6, 50)])
def test_ids_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"of shape \(batch, words, 50\), found"):
        tiny()(torch.ones(shape, dtype=torch.long))


# What was published ------------------------------------------------------------------------------


def test_the_number_of_parameters_is_the_published_one() -> None:
    with torch.device("meta"):
        model = CharacterBertModel(CharacterBertConfig())
    parameters = dict(model.named_parameters())
    network = sum(
        p.numel() for name, p in parameters.items() if name.startswith("embeddings.word_embeddings")
    )
    total = sum(p.numel() for p in parameters.values())
    # Of the sizes of ELMo's character network: a table, seven convolutions, two highway layers and
    # a projection.
    filters = {1: 32, 2: 32, 3: 64, 4: 128, 5: 256, 6: 512, 7: 1024}
    table = 263 * 16
    convolutions = sum(16 * width * count + count for width, count in filters.items())
    highways = 2 * (2048 * 4096 + 4096)
    projection = 2048 * 768 + 768
    assert network == table + convolutions + highways + projection
    # BERT-base without its table of 30522 word pieces: 109,482,240 − 30522·768.
    assert total - network == 109_482_240 - 30522 * 768
    # El Boukkouri et al. 2020, section 3: 104.6 million, against 109.5 million for BERT-base.
    assert total == 104_603_760


def published() -> dict[str, list[int]]:
    """Names and shapes in the authors' checkpoints; on the hub below ``character_bert.``."""

    def linear(name: str, out: int, into: int) -> dict[str, list[int]]:
        return {f"{name}.weight": [out, into], f"{name}.bias": [out]}

    def norm(name: str) -> dict[str, list[int]]:
        return {f"{name}.weight": [768], f"{name}.bias": [768]}

    words = "embeddings.word_embeddings"
    names = {
        f"{words}._char_embedding_weights": [263, 16],
        f"{words}.char_conv_0.weight": [32, 16, 1],
        f"{words}.char_conv_0.bias": [32],
        f"{words}.char_conv_1.weight": [32, 16, 2],
        f"{words}.char_conv_1.bias": [32],
        f"{words}.char_conv_2.weight": [64, 16, 3],
        f"{words}.char_conv_2.bias": [64],
        f"{words}.char_conv_3.weight": [128, 16, 4],
        f"{words}.char_conv_3.bias": [128],
        f"{words}.char_conv_4.weight": [256, 16, 5],
        f"{words}.char_conv_4.bias": [256],
        f"{words}.char_conv_5.weight": [512, 16, 6],
        f"{words}.char_conv_5.bias": [512],
        f"{words}.char_conv_6.weight": [1024, 16, 7],
        f"{words}.char_conv_6.bias": [1024],
        **linear(f"{words}._highways._layers.0", 4096, 2048),
        **linear(f"{words}._highways._layers.1", 4096, 2048),
        **linear(f"{words}._projection", 768, 2048),
        "embeddings.position_embeddings.weight": [512, 768],
        "embeddings.token_type_embeddings.weight": [2, 768],
        **norm("embeddings.LayerNorm"),
        **linear("pooler.dense", 768, 768),
    }
    for k in range(12):
        layer = f"encoder.layer.{k}"
        names |= linear(f"{layer}.attention.self.query", 768, 768)
        names |= linear(f"{layer}.attention.self.key", 768, 768)
        names |= linear(f"{layer}.attention.self.value", 768, 768)
        names |= linear(f"{layer}.attention.output.dense", 768, 768)
        names |= norm(f"{layer}.attention.output.LayerNorm")
        names |= linear(f"{layer}.intermediate.dense", 3072, 768)
        names |= linear(f"{layer}.output.dense", 768, 3072)
        names |= norm(f"{layer}.output.LayerNorm")
    return names


def test_names_and_shapes_are_the_published_ones() -> None:
    with torch.device("meta"):
        model = CharacterBertModel(CharacterBertConfig())
    assert {name: list(t.shape) for name, t in model.state_dict().items()} == published()


def checkpoint(folder: Path, *, on_the_hub: bool, without: str = "") -> dict[str, torch.Tensor]:
    """A tiny checkpoint as published: a torch file, on the hub with heads and code of its own."""
    state = {name: t for name, t in tiny(3).state_dict().items() if name != without}
    written: dict[str, Any] = {
        "model_type": "character_bert",
        **TINY,
        "hidden_act": "gelu",
        "cnn_activation": "relu",
        "character_embeddings_dim": 16,
        "max_word_length": 50,
        "num_highway_layers": 2,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "type_vocab_size": 2,
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        "tie_word_embeddings": False,
        "use_cache": True,
        "transformers_version": "4.3.0.dev0",
    }
    stored = state
    if on_the_hub:
        stored = {f"character_bert.{name}": tensor for name, tensor in state.items()}
        stored["character_bert.embeddings.position_ids"] = torch.arange(16).unsqueeze(0)
        stored["cls.predictions.bias"] = torch.zeros(9)
        stored["cls.seq_relationship.weight"] = torch.zeros(2, 24)
        written |= {"architectures": ["CharacterBertForPreTraining"], "mlm_vocab_size": 9}
        written |= {
            "auto_map": {"AutoModel": "modeling_character_bert.CharacterBertForPreTraining"}
        }
    torch.save(stored, folder / "pytorch_model.bin")
    (folder / "config.json").write_text(json.dumps(written))
    return state


@pytest.mark.parametrize("on_the_hub", [False, True])
def test_a_checkpoint_under_the_published_names_loads(tmp_path: Path, on_the_hub: bool) -> None:
    state = checkpoint(tmp_path, on_the_hub=on_the_hub)
    module = built(f"path:{tmp_path}", tmp_path)
    loaded = module.state_dict()
    # The pooler is behind the last layer and isn't built.
    assert set(state) - set(loaded) == {"pooler.dense.weight", "pooler.dense.bias"}
    for name, tensor in loaded.items():
        assert torch.equal(tensor, state[name]), name
    # What it is compared with: the untrained network of its architecture.
    assert architecture(module) == architecture(built("init:character_bert", tmp_path, **TINY))


@pytest.mark.parametrize(
    "name",
    [
        "embeddings.word_embeddings._char_embedding_weights",
        "embeddings.word_embeddings.char_conv_1.bias",
        "encoder.layer.2.attention.self.query.weight",
    ],
)
def test_a_missing_weight_is_an_error(tmp_path: Path, name: str) -> None:
    checkpoint(tmp_path, on_the_hub=True, without=name)
    with pytest.raises(SourceError, match=f"1 missing \\({name}\\)"):
        built(f"path:{tmp_path}", tmp_path)


# As a model of transformers ----------------------------------------------------------------------


def test_saved_and_loaded_is_the_same_to_the_bit(tmp_path: Path) -> None:
    model = tiny()
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert type(loaded) is CharacterBertModel
    assert architecture(loaded) == architecture(model)
    state = loaded.state_dict()
    assert list(state) == list(model.state_dict())
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[name]), name


def test_a_seed_repeats_and_another_differs(tmp_path: Path) -> None:
    first, again, other = (
        weights_fingerprint(built(f"init:character_bert?seed={seed}", tmp_path, **TINY))
        for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


def test_the_initial_weights_are_the_authors() -> None:
    with seeded(0):
        network = AutoModel.from_config(
            AutoConfig.for_model("character_bert", num_hidden_layers=1)
        ).embeddings.word_embeddings
    characters = network._char_embedding_weights
    blank = [k for k in range(263) if not characters[k].any()]
    assert blank == [0, 261]
    assert characters[1:261].std().item() == pytest.approx(1, abs=0.05)
    for layer in (*network._highways._layers, network._projection):
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.01)
        assert not layer.bias.any()
    for k in range(1, 8):
        convolution = getattr(network, f"char_conv_{k - 1}")
        bound = 1 / math.sqrt(16 * k)
        assert 0.9 * bound < convolution.weight.abs().max().item() <= bound
        assert convolution.bias.any()


def test_gradients_reach_every_parameter() -> None:
    model = tiny()
    output = model(ids_of(SENTENCE))
    (output.last_hidden_state.pow(3).sum() + output.pooler_output.pow(3).sum()).backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    for name, gradient in gradients.items():
        assert gradient is not None, name
        assert gradient.isfinite().all(), name
        # A bias of the keys adds the same to all scores of a row, which softmax takes away again.
        assert gradient.any() or name.endswith("key.bias"), name
    characters = gradients["embeddings.word_embeddings._char_embedding_weights"]
    assert characters is not None
    read = set(word_ids(SENTENCE).flatten().tolist())
    assert {k for k in range(263) if characters[k].any()} <= read


# In isotest --------------------------------------------------------------------------------------


def test_layers_are_the_embedding_output_and_the_blocks(tmp_path: Path) -> None:
    module = built("init:character_bert", tmp_path, **TINY).eval()
    inputs = Inputs({"input_ids": ids_of(SENTENCE)})
    observation = observe(module, inputs, "init:character_bert")
    assert [(layer.name, layer.path, layer.kind) for layer in observation.layers] == [
        ("0", "embeddings", "tokens"),
        ("1", "encoder.layer.0", "tokens"),
        ("2", "encoder.layer.1", "tokens"),
        ("3", "encoder.layer.2", "tokens"),
    ]
    assert observation.representation == "positions"


@pytest.mark.parametrize(
    ("change", "decides"),
    [
        ({"cnn_activation": "tanh"}, True),
        ({"num_attention_heads": 2}, True),
        ({"layer_norm_eps": 1e-3}, True),
        ({"max_word_length": 40}, True),
        ({"hidden_dropout_prob": 0.3}, False),
        ({"initializer_range": 0.3}, False),
    ],
)
def test_what_decides_the_computation_reaches_the_digest(
    change: dict[str, Any], decides: bool, tmp_path: Path
) -> None:
    before, after = (
        architecture(built("init:character_bert", tmp_path, **config))
        for config in (TINY, {**TINY, **change})
    )
    assert (before != after) is decides
    assert before["parameters"] == after["parameters"]


@pytest.mark.parametrize("key", ["vocab_size", "is_decoder", "mlm_vocab_size"])
def test_what_would_change_nothing_cannot_be_set(key: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=f"no configuration key '{key}'"):
        built("init:character_bert", tmp_path, **{key: 1})
