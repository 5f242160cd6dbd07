"""``hub:OWNER/NAME[@REVISION]``: a transformers model from the Hugging Face cache, or the hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from isotest.errors import MissingError, SourceError, one_line
from isotest.models.checkpoint import WEIGHT_FILES, from_folder

if TYPE_CHECKING:
    from isotest.models.registry import Built, Request

_DESCRIPTION = ("config.json", "preprocessor_config.json", "processor_config.json")
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
    patterns = _DESCRIPTION + (_SAFETENSORS if request.weights else ())
    patterns += ("*.py",) if request.trust_remote_code else ()
    folder = snapshot(source.location, source.revision, patterns, what, download=request.download)
    if request.weights and not any((folder / name).is_file() for name in WEIGHT_FILES):
        if request.download:
            snapshot(source.location, source.revision, _TORCH, what, download=True)
        else:
            raise not_cached(what, f"the weights of {source.location}")
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
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

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
    except HFValidationError as error:
        raise SourceError(f"source {what!r}: {one_line(error)}") from None
    except GatedRepoError:
        raise MissingError(
            f"source {what!r}: access to {repository} is restricted",
            "ask for access on its page on the hub, and log in with 'hf auth login'",
        ) from None
    except RevisionNotFoundError:
        raise SourceError(
            f"source {what!r}: {repository} has no revision {revision!r}; give a branch, tag or "
            "commit that it has, or leave '@' out for its main branch"
        ) from None
    except RepositoryNotFoundError:
        raise SourceError(
            f"source {what!r}: the hub has no model {repository}; correct the name, or, if it is "
            "private, log in with 'hf auth login'"
        ) from None
    except LocalEntryNotFoundError:
        at = f" at {revision}" if revision else ""
        raise not_cached(what, f"{repository}{at}", tried=download) from None
    except OSError as error:
        if isinstance(error, HfHubHTTPError) and error.response.status_code in (401, 403):
            raise MissingError(
                f"source {what!r}: there is no access to {repository} ({one_line(error)})",
                "log in with 'hf auth login', or set HF_TOKEN",
            ) from None
        raise MissingError(
            f"source {what!r}: fetching {repository} failed: {one_line(error)}",
            "check the network and the disk, then run again",
        ) from None


def not_cached(what: str, missing: str, *, tried: bool = False) -> MissingError:
    """For something that the hub has and the cache hasn't."""
    if tried:
        return MissingError(
            f"source {what!r}: {missing} is not in the Hugging Face cache and the hub cannot be "
            "reached",
            "check the network, or HF_HUB_OFFLINE",
        )
    return MissingError(
        f"source {what!r}: {missing} is not in the Hugging Face cache",
        "fetch it with --isotest-download",
    )
