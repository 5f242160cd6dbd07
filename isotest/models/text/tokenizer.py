"""Tokenizers: a model's own, one that is named, or the shipped one for untrained models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isotest.errors import IsotestError, MissingError, SourceError, one_line
from isotest.models.hub import TOKENIZER_FILES, snapshot
from isotest.models.quiet import quiet
from isotest.models.text.encoder import TextEncoder, ids
from isotest.source import TOKENIZER_SCHEMES, Source, did_you_mean, parse_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from isotest.models.feeds import FeedRequest
    from isotest.models.text.encoder import Ids

BUILT_IN = ("bytes", "codepoints", "words")
SAMPLE = Path(__file__).parents[2] / "samples" / "tokenizer"

_PROBE = "a b"

# Ids below it stay free for what families add around a text, under the ids that they know it by.
_OFFSET = 1000
# Model type to what is added in front and behind, padding, and its side, as the named checkpoints
# of the suites have it: [CLS] … [SEP], <s> … </s>, … </s>, … <sep> <cls>, <s> …, nothing.
_CONVENTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, str]] = {
    "bert": ((101,), (102,), 0, "right"),
    "roberta": ((0,), (2,), 1, "right"),
    "albert": ((2,), (3,), 0, "right"),
    "xlnet": ((), (4, 3), 5, "left"),
    "t5": ((), (1,), 0, "right"),
    "llama": ((1,), (), 2, "right"),
}


def encoder_of(request: FeedRequest) -> TextEncoder:
    """The encoder that the suite names, or the model's own.

    Raises:
        SourceError: there is none, it cannot be read, or it makes ids that the model doesn't know.
        MissingError: it could be had but is not here.
    """
    named = request.reading.tokenizer
    config: Any = getattr(request.module, "config", None)
    kind = getattr(config, "model_type", "")
    if named is None:
        named = {"canine": "codepoints", "character_bert": "words", "manta": "bytes"}.get(kind)
    if named is not None and not isinstance(named, str):
        raise SourceError(
            f"source {request.what!r}: expected 'tokenizer' to be text that says where it is, "
            f"found a {type(named).__name__}; save it with save_pretrained and name 'path:FOLDER', "
            "so that whoever reads the profile knows it"
        )
    if named in BUILT_IN:
        encoder = _built_in(str(named))
    elif named is None:
        encoder = _own(request)
    else:
        encoder = _named(named, kind, request)
    return _fitting(encoder, config, request)


def _built_in(name: str) -> TextEncoder:
    from isotest.models.text import characters

    make: dict[str, Callable[[], TextEncoder]] = {
        "bytes": characters.by_bytes,
        "codepoints": characters.by_code_points,
        "words": characters.by_words,
    }
    return make[name]()


def _own(request: FeedRequest) -> TextEncoder:
    folder = request.folder
    if folder is None or not has_tokenizer(folder):
        where = "the model brings none" if folder is None else f"there is none in {folder}"
        raise SourceError(
            f"source {request.what!r}: expected a tokenizer, and {where}; name one with "
            "measure = { tokenizer = … } in the suite entry, or tokenizer = … of isotest.measure: "
            "'sample:tokenizer' for an untrained model, 'hub:OWNER/NAME', 'path:FOLDER', "
            "'package:DIST/FOLDER', 'python:MODULE:FUNCTION', or one of "
            f"{', '.join(BUILT_IN)}"
        )
    return from_folder(folder, f"source {request.what!r}")


def _named(named: str, kind: str, request: FeedRequest) -> TextEncoder:
    where = f"source {request.what!r}: tokenizer {named!r}"
    try:
        source = parse_source(named, TOKENIZER_SCHEMES)
    except SourceError as error:
        hint = did_you_mean(named, BUILT_IN)
        raise SourceError(f"{where}: {error}{hint if 'did you mean' in hint else ''}") from None
    base = request.base or Path.cwd()
    match source.scheme:
        case "sample":
            return _sample(source, kind, where)
        case "python":
            return _from_code(source, where)
        case "path":
            folder = base / Path(source.location).expanduser()
            if not folder.is_dir():
                raise MissingError(f"{where}: no folder {folder}", "save the tokenizer there")
        case "package":
            from isotest.models.package import locate

            folder, _ = locate(source.location, named)
        case _:
            folder = snapshot(
                source.location, source.revision, TOKENIZER_FILES, named, download=request.download
            )
    return from_folder(folder, where)


def from_folder(folder: Path, where: str) -> TextEncoder:
    """The tokenizer in a folder; only its own files are read, and no code that comes with them.

    Raises:
        SourceError: there is none, or it cannot be read.
    """
    import transformers

    if not has_tokenizer(folder):
        raise SourceError(
            f"{where}: expected a tokenizer in {folder}, found none of {', '.join(TOKENIZER_FILES)}"
        )
    auto: Any = transformers.AutoTokenizer
    try:
        with quiet():
            tokenizer = auto.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise SourceError(
            f"{where}: the tokenizer in {folder} cannot be read: {one_line(error)}"
        ) from error
    return _of_transformers(tokenizer, where)


def has_tokenizer(folder: Path) -> bool:
    """Whether any file of a tokenizer lies in a folder."""
    return any((folder / name).is_file() for name in TOKENIZER_FILES)


def _of_transformers(tokenizer: Any, where: str) -> TextEncoder:
    """A transformers tokenizer: what it adds around a text is found by trying it on one."""

    def encode(text: str) -> Ids:
        with quiet():
            encoded = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return np.array(encoded, np.int64)

    with quiet():
        body = list(tokenizer(_PROBE, add_special_tokens=False)["input_ids"])
        whole = list(tokenizer(_PROBE)["input_ids"])
    starts = [k for k in range(len(whole)) if whole[k : k + len(body)] == body]
    if not body or len(starts) != 1:
        raise SourceError(
            f"{where}: cannot tell what it adds around a text: {_PROBE!r} becomes {body} alone and "
            f"{whole} with special tokens"
        )
    known = [*tokenizer.get_vocab().values(), *whole]
    return TextEncoder(
        encode,
        size=max(known) + 1,
        prefix=ids(*whole[: starts[0]]),
        suffix=ids(*whole[starts[0] + len(body) :]),
        padding=tokenizer.pad_token_id,
        side="left" if tokenizer.padding_side == "left" else "right",
    )


def _from_code(source: Source, where: str) -> TextEncoder:
    """Whatever tokenizer a function returns: a transformers tokenizer, or an encoder."""
    from isotest.reference import referenced

    function = referenced(source.location, where)
    try:
        made = function()
        if isinstance(made, TextEncoder):
            return made
        if callable(made) and hasattr(made, "get_vocab"):
            return _of_transformers(made, where)
    except IsotestError:
        raise
    except (Exception, SystemExit) as error:
        raise SourceError(f"{where}: raised {one_line(error)}") from error
    raise SourceError(
        f"{where}: expected a transformers tokenizer or an "
        f"isotest.models.text.encoder.TextEncoder, found {type(made).__name__}"
    )


def _sample(source: Source, kind: str, where: str) -> TextEncoder:
    """The shipped byte-level BPE, with what the family of the model adds around a text."""
    from tokenizers import Tokenizer

    if source.location != "tokenizer":
        hint = did_you_mean(source.location, ["tokenizer"])
        raise SourceError(f"{where}: no sample tokenizer {source.location!r}{hint}")
    bpe = Tokenizer.from_file(str(SAMPLE / "tokenizer.json"))

    def encode(text: str) -> Ids:
        return np.array(bpe.encode(text, add_special_tokens=False).ids, np.int64) + _OFFSET

    encoder = TextEncoder(encode, size=bpe.get_vocab_size() + _OFFSET, padding=0)
    if kind not in _CONVENTIONS:
        return encoder
    prefix, suffix, padding, side = _CONVENTIONS[kind]
    return replace(
        encoder,
        prefix=ids(*prefix),
        suffix=ids(*suffix),
        padding=padding,
        side="left" if side == "left" else "right",
    )


def _fitting(encoder: TextEncoder, config: Any, request: FeedRequest) -> TextEncoder:
    """The encoder, if the model has an embedding for each of its ids."""
    known = getattr(config, "vocab_size", None)
    if not isinstance(known, int):  # CANINE hashes code points; CharacterBERT knows no words
        return encoder
    if encoder.units == "words":
        raise SourceError(
            f"source {request.what!r}: tokenizer = 'words' spells words for CharacterBERT, and "
            f"{type(request.module).__name__} looks up one id a token; name its own tokenizer"
        )
    if encoder.size > known:
        raise SourceError(
            f"source {request.what!r}: expected a tokenizer whose ids the model knows (its "
            f"vocabulary has {known} entries), found ids up to {encoder.size - 1}; name the "
            "tokenizer that it was trained with, or build the model with vocab_size = "
            f"{encoder.size}"
        )
    return encoder
