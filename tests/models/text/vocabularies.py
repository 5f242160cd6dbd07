"""Tokenizers of transformers over a tiny vocabulary, with what families add around a text."""

from __future__ import annotations

from string import ascii_lowercase, digits
from typing import Any

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]"}
PAD, UNK, CLS, SEP = range(4)
_PARTS = [*ascii_lowercase, *digits, *".,;:!?'-()", "the", "and", "of"]
VOCABULARY = {
    part: number
    for number, part in enumerate(
        [*SPECIAL.values(), *_PARTS, *(f"##{part}" for part in _PARTS if part.isalnum())]
    )
}


def tokenizer(template: str | None, **options: Any) -> Any:
    """Word pieces of single letters and a few words, with ``template`` around them."""
    made: Any = Tokenizer(models.WordPiece(VOCABULARY, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if template is not None:
        made.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
        )
    named = {f"{name}_token": token for name, token in SPECIAL.items()}
    return PreTrainedTokenizerFast(tokenizer_object=made, **(named | options))


def around() -> Any:
    """As BERT's: something before and something after."""
    return tokenizer("[CLS] $A [SEP]")


def around_left() -> Any:
    """The same, padded on the left."""
    return tokenizer("[CLS] $A [SEP]", padding_side="left")


def bare() -> Any:
    """As GPT-2's: nothing added, no padding token."""
    return tokenizer(None, pad_token=None)


def bare_right() -> Any:
    """Nothing added, with a padding token."""
    return tokenizer(None)


def bare_left() -> Any:
    """The same, padded on the left."""
    return tokenizer(None, padding_side="left")


def after() -> Any:
    """As T5's: something after."""
    return tokenizer("$A [SEP]")


def after_left() -> Any:
    """The same, padded on the left."""
    return tokenizer("$A [SEP]", padding_side="left")


def before_left() -> Any:
    """As a Llama's for generation: something before, padded on the left."""
    return tokenizer("[CLS] $A", padding_side="left")


def twice() -> Any:
    """As XLNet's: two after; padded on the left."""
    return tokenizer("$A [SEP] [CLS]", padding_side="left")
