"""``hub:OWNER/NAME[@REVISION]``: a transformers model from the Hugging Face cache, or the hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from isotest.errors import MissingError, SourceError
from isotest.hub import hub_fault
from isotest.models.checkpoint import WEIGHT_FILES, from_folder

if TYPE_CHECKING:
    from isotest.models.registry import Built, Request

_DESCRIPTION = ("config.json", "preprocessor_config.json", "processor_config.json")
TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt"),
    *("spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
)
"""What a tokenizer may be stored in."""
_SAFETENSORS = ("model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors")
_TORCH = ("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-*-of-*.bin")


def build(request: Request) -> Built:
    """The base model of a hub repository; only from the cache unless downloading is allowed.

    Raises:
        MissingError: not in the cache and not allowed to download, or the hub can't be reached.
        SourceError: no such repository or revision; weights as in ``from_folder``.
    """
    source = request.source
    source.require_options(())
    what = str(source)
    patterns = _DESCRIPTION + TOKENIZER_FILES + (_SAFETENSORS if request.weights else ())
    patterns += ("*.py",) if request.trust_remote_code else ()
    folder = snapshot(source.location, source.revision, patterns, what, download=request.download)
    if request.weights and not any((folder / name).is_file() for name in WEIGHT_FILES):
        if request.download:
            snapshot(source.location, source.revision, _TORCH, what, download=True)
        else:
            raise not_cached(what, f"the weights of {source.location}")
        if not any((folder / name).is_file() for name in WEIGHT_FILES):
            raise SourceError(
                f"source {what!r}: {source.location} has no weights that can be read (looked for "
                f"{', '.join(WEIGHT_FILES[::2])}); name a repository that has, or use init: for "
                "untrained ones"
            )
    return from_folder(folder, request, commit=folder.name)


def snapshot(
    repository: str,
    revision: str | None,
    patterns: tuple[str, ...],
    what: str,
    *,
    download: bool,
) -> Path:
    """The cached snapshot of a repository, whose name is the resolved commit.

    Args:
        repository: ``owner/name``.
        revision: branch, tag or commit; ``None`` is the main branch.
        patterns: the files wanted, as globs.
        what: the source as text, for messages.
        download: fetch what isn't cached; without it the network isn't touched.

    Raises:
        MissingError: not cached and not allowed to download, or the hub can't be reached.
        SourceError: a malformed name, no such repository or revision, or no access.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", repository):
        raise SourceError(f"source {what!r}: expected hub:OWNER/NAME, found {repository!r}")
    try:
        return Path(
            snapshot_download(
                repository,
                revision=revision,
                allow_patterns=list(patterns),
                local_files_only=not download,
            )
        )
    except Exception as error:  # also those of whatever huggingface_hub connects with
        if isinstance(error, LocalEntryNotFoundError) and not download:
            at = f" at {revision}" if revision else ""
            # Its subclass says that an interrupted download left some of the files.
            some = "" if type(error) is LocalEntryNotFoundError else "a part of "
            raise not_cached(what, f"{some}{repository}{at}") from None
        raise hub_fault(error, f"source {what!r}", "model", repository, revision) from None


def not_cached(what: str, missing: str) -> MissingError:
    """For something that the hub has and the cache hasn't."""
    return MissingError(
        f"source {what!r}: {missing} is not in the Hugging Face cache",
        "fetch it with --isotest-download",
    )
