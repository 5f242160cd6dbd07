"""Tiny random models of every family that reads texts, and what the observer sees of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from isotest.data.load import as_data, open_data
from isotest.models import load_model
from isotest.models.reading import Reading
from isotest.observation import Observer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from isotest.models.loaded import LoadedModel, Piece
    from isotest.observation import SpecialTokens

# Weights this large make a position depend on all of its context: a leak through a mask shows.
WIDE = {"initializer_range": 0.3}
BERT: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 6000,
    **WIDE,
}
T5: dict[str, Any] = {
    "d_model": 32,
    "d_ff": 64,
    "d_kv": 8,
    "num_heads": 4,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "vocab_size": 6000,
}


@dataclass(frozen=True)
class Family:
    """A model type with a configuration, and how texts are read for it.

    Attributes:
        shortest: characters of the shortest text of :func:`texts`.
        tolerance: between two ways to compute the same number, relative to a sequence's largest.
    """

    model_type: str
    config: dict[str, Any]
    tokenizer: str | None = "sample:tokenizer"
    length: int = 48
    dtype: str = "float64"
    shortest: int = 1
    tolerance: float = 1e-9


WORDLESS = {key: value for key, value in BERT.items() if key != "vocab_size"}
CANINE = {**WORDLESS, "num_hash_buckets": 512}
GPT2 = {"n_embd": 32, "n_layer": 3, "n_head": 4, "vocab_size": 6000, **WIDE}
BART = {
    "d_model": 32,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": 6000,
    "init_std": 0.3,
}
LLAMA = {**BERT, "num_key_value_heads": 2}
FAMILIES: dict[str, Family] = {
    "bert": Family("bert", BERT),
    "roberta": Family("roberta", BERT),
    "gpt2": Family("gpt2", GPT2),
    "bart": Family("bart", BART, tokenizer="python:tests.models.text.vocabularies:around"),
    "t5": Family("t5", T5),
    "t5-gated": Family("t5", {**T5, "feed_forward_proj": "gated-gelu"}),
    "byt5": Family(
        "t5",
        {**T5, "feed_forward_proj": "gated-gelu", "vocab_size": 384},
        tokenizer="bytes",
    ),
    "albert": Family("albert", {**BERT, "embedding_size": 16}),
    "albert-2-groups": Family(
        "albert", {**BERT, "embedding_size": 16, "num_hidden_layers": 5, "num_hidden_groups": 2}
    ),
    "xlnet": Family(
        "xlnet",
        {"d_model": 32, "n_layer": 3, "n_head": 4, "d_inner": 64, "vocab_size": 6000, **WIDE},
    ),
    "llama": Family("llama", LLAMA),
    "gpt_neox": Family("gpt_neox", BERT),
    # Its masks overflow in float64 (a fault of transformers), so it runs in float32. A molecule
    # needs a text that goes beyond the first four characters, CLS and SEP among them.
    "canine": Family("canine", CANINE, None, dtype="float32", shortest=3, tolerance=2e-5),
    # Two chunks of local attention, and a length that the downsampling rate does not divide.
    "canine-long": Family(
        "canine", CANINE, None, length=150, dtype="float32", shortest=3, tolerance=2e-5
    ),
    "manta": Family(
        "manta",
        {
            **T5,
            "vocab_size": 384,
            "byte_embedding_dim": 16,
            "max_length_inputs": 64,
            "max_length_encoder_decoder": 32,
        },
        tokenizer=None,
    ),
    "character_bert": Family(
        "character_bert", {**WORDLESS, "cnn_filters": [[1, 8], [2, 8], [3, 16]]}, tokenizer=None
    ),
}


@cache
def passages() -> tuple[str, ...]:
    """Texts long enough for anything here."""
    data = open_data("sample:passages", modality="text", samples=8)
    return tuple(sample.content for sample in data)


def texts(family: Family) -> list[str]:
    """Eight texts from the shortest possible to one that is cut off; each begins another way."""
    lengths = (family.shortest, 12, 2000, 33, family.shortest, 120, 7, 60)
    beginnings = zip("abcdefgh", passages(), lengths, strict=True)
    return [f"{letter} {passage}"[:length] for letter, passage, length in beginnings]


def loaded(name: str, **changes: Any) -> LoadedModel:
    """A family's model, reading each text as a document of its own."""
    family = FAMILIES[name]
    reading = {
        "tokenizer": family.tokenizer,
        "packing": "documents",
        "length": family.length,
        **changes,
    }
    return load_model(
        f"init:{family.model_type}?seed=5",
        modality="text",
        reading=Reading(**reading),
        config=family.config,
        dtype=family.dtype,
    )


def pieces(model: LoadedModel, contents: Sequence[str]) -> list[Piece]:
    """The sequences that a model makes of texts."""
    return list(model.feed.pieces(as_data(contents, "text"), grouped=False))


class Recorder:
    """Takes in what a layer's statistics would, and keeps it."""

    def __init__(self) -> None:
        self.values: list[Tensor] = []
        self.masks: list[Tensor] = []

    def update(self, x: Tensor, units: Tensor, mask: Tensor | None = None) -> None:
        import torch

        self.values += list(x.clone())
        kept = torch.ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        self.masks += list(kept.clone())

    @property
    def rows(self) -> list[Tensor]:
        """Of each sequence, the representations that count: (positions, width)."""
        return [x[mask] for x, mask in zip(self.values, self.masks, strict=True)]


def observed(
    model: LoadedModel,
    sequences: Sequence[Piece],
    *,
    batch_size: int = 8,
    special_tokens: SpecialTokens = "include",
) -> dict[str, Recorder]:
    """What the measurement's own observer hands to the statistics of each layer."""
    recorders = {layer.name: Recorder() for layer in model.layers}
    observer = Observer(model, cast("Any", recorders), "positions", special_tokens, "m")
    with observer.hooked() as run:
        for start in range(0, len(sequences), batch_size):
            run(sequences[start : start + batch_size])
    return recorders
