"""GGUF files: the same numbers as transformers' own reading, read once, and never half."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import quantize
from transformers import AutoModel, AutoTokenizer, LlamaConfig, LlamaModel
from transformers.convert_slow_tokenizer import bytes_to_unicode

from isotest.cache import CacheWarning
from isotest.errors import MissingError, SourceError
from isotest.models.registry import Built, Request, build
from isotest.models.seeding import seeded
from isotest.source import MODEL_SCHEMES, parse_source

if TYPE_CHECKING:
    from pathlib import Path

ALPHABET = list(bytes_to_unicode().values())
TOKENS = [*ALPHABET, "he", "ll", "<end>"]
CONFIG = LlamaConfig(
    vocab_size=len(TOKENS),
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=128,
    rms_norm_eps=1e-5,
)
NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
F32 = GGMLQuantizationType.F32


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ISOTEST_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def original() -> LlamaModel:
    with seeded(0):
        model: LlamaModel = LlamaModel(CONFIG).eval()
    return model


def tensors(model: LlamaModel) -> dict[str, np.ndarray[Any, Any]]:
    """The weights under GGUF's names; halves of rotary heads interleaved, as llama.cpp has them."""
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    found = {"token_embd": state["embed_tokens.weight"], "output_norm": state["norm.weight"]}
    for block in range(CONFIG.num_hidden_layers):
        for ours, theirs in NAMES.items():
            found[f"blk.{block}.{theirs}"] = state[f"layers.{block}.{ours}.weight"]
        for theirs, heads in (("attn_q", 4), ("attn_k", 2)):
            name = f"blk.{block}.{theirs}"
            halves = found[name].reshape(heads, 2, 8, 64)
            found[name] = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(-1, 64)
    return {f"{name}.weight": value for name, value in found.items()}


def write(
    path: Path,
    kind: GGMLQuantizationType = F32,
    *,
    architecture: str = "llama",
    blocks: int = 3,
    without: str = "",
    head: bool = False,
    tokenizer: bool = True,
) -> Path:
    writer = GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_block_count(blocks)
    writer.add_context_length(128)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(TOKENS))
    if tokenizer:
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list(TOKENS)
        writer.add_token_types([1] * (len(TOKENS) - 1) + [3])
        writer.add_token_merges(["h e", "l l"])
        writer.add_bos_token_id(len(TOKENS) - 1)
        writer.add_eos_token_id(len(TOKENS) - 1)
    stored = tensors(original())
    if head:
        stored["output.weight"] = np.ones((len(TOKENS), 64), np.float32)
    for name, value in stored.items():
        if name != without:
            chosen = kind if value.ndim == 2 else F32
            writer.add_tensor(name, quantize(value, chosen), raw_dtype=chosen)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def load(path: Path, options: str = "") -> Built:
    source = parse_source(f"path:{path.name}{options}", MODEL_SCHEMES)
    return build(Request(source, {}, path.parent))


def states(model: Any) -> torch.Tensor:
    """All hidden states of one fixed batch, (layers, batch, length, width)."""
    tokens = torch.arange(24).reshape(2, 12) * 5 % len(TOKENS)
    with torch.no_grad():
        output = model.eval()(input_ids=tokens, output_hidden_states=True)
    return torch.stack([*output.hidden_states, output.last_hidden_state])


@pytest.mark.parametrize("kind", [F32, GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q4_1])
def test_the_numbers_are_those_of_transformers_own_reading(
    tmp_path: Path, kind: GGMLQuantizationType
) -> None:
    path = write(tmp_path / "tiny.gguf", kind)
    built = load(path)
    found = states(built.module)
    theirs = AutoModel.from_pretrained(tmp_path, gguf_file=path.name, dtype=torch.float32)
    assert torch.equal(found, states(theirs))
    assert {p.dtype for p in built.module.parameters()} == {torch.float32}
    assert built.libraries == ("transformers", "gguf")
    # Exact where nothing was quantised; a rounding error away where it was.
    error = (found - states(original())).norm() / found.norm()
    assert error == 0 if kind is F32 else 1e-4 < error < 0.2


def test_the_tokenizer_comes_along(tmp_path: Path) -> None:
    built = load(write(tmp_path / "tiny.gguf"))
    tokenizer = AutoTokenizer.from_pretrained(built.folder)
    expected = [TOKENS.index(token) for token in ("he", "ll", "o")]
    assert tokenizer("hello", add_special_tokens=False)["input_ids"] == expected
    assert tokenizer.eos_token == "<end>"


def test_a_file_without_a_tokenizer_is_a_model_without_one(tmp_path: Path) -> None:
    built = load(write(tmp_path / "tiny.gguf", tokenizer=False))
    assert built.folder is not None
    assert not (built.folder / "tokenizer.json").exists()


def test_the_head_is_no_part_of_the_model(tmp_path: Path) -> None:
    built = load(write(tmp_path / "tiny.gguf", head=True))
    assert torch.equal(states(built.module), states(original()))


def test_the_file_is_read_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "tiny.gguf")
    first = load(path)
    assert [record.getMessage() for record in caplog.records] == [
        f"isotest: converting tiny.gguf once, into {first.folder}"
    ]
    monkeypatch.delattr("gguf.GGUFReader")
    again = load(path.rename(tmp_path / "renamed.gguf"))
    assert again.folder == first.folder
    assert torch.equal(states(again.module), states(first.module))
    assert sorted(p.suffix for p in (cache / "models").iterdir()) == ["", ".lock"]


def test_other_content_is_another_folder(tmp_path: Path) -> None:
    first = load(write(tmp_path / "tiny.gguf"))
    second = load(write(tmp_path / "tiny.gguf", GGMLQuantizationType.Q8_0))
    assert first.folder != second.folder
    assert not torch.equal(states(first.module), states(second.module))


@pytest.mark.parametrize("damage", ["changed", "truncated", "removed", "undigested"])
def test_a_damaged_conversion_is_made_again(tmp_path: Path, damage: str) -> None:
    path = write(tmp_path / "tiny.gguf")
    folder = load(path).folder
    assert folder is not None
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    match damage:
        case "changed":
            weights.write_bytes(content)
        case "truncated":
            weights.write_bytes(content[:-1])
        case "removed":
            weights.unlink()
        case _:
            (folder / ".digest").unlink()
    with pytest.warns(CacheWarning, match=r"damaged; tiny\.gguf is converted again"):
        again = load(path)
    assert torch.equal(states(again.module), states(original()))


def test_what_a_killed_process_left_is_no_model(tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.gguf")
    folder = load(path).folder
    assert folder is not None
    folder.rename(folder.with_suffix(".isotest-tmp"))
    (folder.with_suffix(".isotest-tmp") / "config.json").write_text("{")
    assert torch.equal(states(load(path).module), states(original()))


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, cache: Path) -> None:
    whole = write(tmp_path / "whole.gguf").read_bytes()
    for share in (0, 0.001, 0.01, 0.05, 0.5, 0.999):
        (tmp_path / "cut.gguf").write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(SourceError, match=r"cannot read .*cut\.gguf; expected a whole GGUF"):
            load(tmp_path / "cut.gguf")
    assert [p.suffix for p in (cache / "models").iterdir() if p.is_dir()] == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "clip"}, "an architecture that transformers reads"),
        ({"without": "blk.1.ffn_up.weight"}, "missing (layers.1.mlp.up_proj.weight)"),
        ({"blocks": 2}, "metadata describe takes"),
        ({"blocks": 4}, "missing (layers.3."),
    ],
)
def test_a_model_that_is_not_whole_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "tiny.gguf", **changes)
    with pytest.raises(SourceError) as caught:
        load(path)
    assert message in str(caught.value)
    assert "tiny.gguf" in str(caught.value)


def test_other_bytes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("no model at all")
    with pytest.raises(SourceError, match=r"cannot read .*text\.gguf"):
        load(tmp_path / "text.gguf")


def test_an_architecture_is_not_asked_for(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="brings its own configuration"):
        load(write(tmp_path / "tiny.gguf"), "?architecture=llama")


def test_packages_that_read_it_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "tiny.gguf")
    monkeypatch.setattr("isotest.models.gguf.find_spec", lambda name: None)
    with pytest.raises(MissingError) as caught:
        load(path)
    assert caught.value.remedy == "pip install gguf accelerate"


def test_a_cache_that_cannot_be_written(tmp_path: Path, cache: Path) -> None:
    cache.write_text("a file")
    with pytest.raises(SourceError, match="set ISOTEST_CACHE_DIR to a folder"):
        load(write(tmp_path / "tiny.gguf"))


def test_the_test_writes_what_the_reader_reads(tmp_path: Path) -> None:
    reader = GGUFReader(write(tmp_path / "tiny.gguf", GGMLQuantizationType.Q4_1))
    kinds = {tensor.tensor_type for tensor in reader.tensors}
    assert kinds == {F32, GGMLQuantizationType.Q4_1}
