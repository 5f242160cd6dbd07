"""GGUF files: read once into an ordinary model folder in the cache, then loaded from there.

transformers reads the file with the package gguf. Quantised weights are dequantised to float32,
which takes tens of seconds even for a small model; reading the folder takes one.
"""

from __future__ import annotations

import contextlib
import io
import logging
import shutil
import warnings
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from isotest.atomic import TEMPORARY_SUFFIX
from isotest.cache import CACHE_DIR_VARIABLE, CacheWarning, cache_folder
from isotest.content import ContentDigests, combined_digest
from isotest.errors import IsotestError, MissingError, SourceError, one_line
from isotest.models.checkpoint import faults, from_configuration, from_folder
from isotest.models.quiet import quiet

if TYPE_CHECKING:
    from pathlib import Path

    from isotest.models.registry import Built, Request

# Whatever decides the values of dequantised weights, their names, or the tokenizer.
_LIBRARIES = ("transformers", "tokenizers", "gguf", "numpy", "torch")
# Raised when a change of this module makes earlier conversions wrong.
_CONVERSION = 1
# Hidden, so that it is no part of the content that it digests.
_DIGEST_FILE = ".digest"
# The head, which is no part of the observed base model.
_HEAD = ("output.weight", "output.bias")

_log = logging.getLogger(__name__)


def from_gguf(path: Path, request: Request) -> Built:
    """The base model in a GGUF file, in float32, with the tokenizer beside it where it has one.

    The first time, the file is converted into a folder below ``cache_folder()``, which is found
    again by the file's content and the versions of the libraries that read it.

    Raises:
        MissingError: gguf, or accelerate, with which transformers reads it, is not installed.
        SourceError: a file that is damaged or incomplete, an architecture or tokenizer that
            transformers does not read, weights that it would leave out, or no writable cache.
    """
    what = str(request.source)
    if "architecture" in request.source.options:
        raise SourceError(
            f"source {what!r}: architecture= is for a safetensors file; {path.name} brings its own "
            "configuration"
        )
    absent = [name for name in ("gguf", "accelerate") if find_spec(name) is None]
    if absent:
        raise MissingError(
            f"source {what!r}: reading a GGUF file needs {' and '.join(absent)}",
            f"pip install {' '.join(absent)}",
        )
    built = from_folder(_converted(path.resolve(), what), request)
    return replace(built, libraries=(*built.libraries, "gguf"))


def _converted(path: Path, what: str) -> Path:
    """The folder with the content of ``path``, made where it is not there yet or damaged."""
    from filelock import FileLock

    cache = cache_folder()
    digests = ContentDigests(cache)
    content = digests.of(path)
    if content is None:
        raise SourceError(f"source {what!r}: {path} cannot be read; expected a GGUF file")
    key = combined_digest([content, _CONVERSION, {name: _version(name) for name in _LIBRARIES}])
    folder = cache / "models" / key
    if _is_whole(folder, digests):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock"), is_singleton=True):
            # Another process may have made it while this one waited.
            if not _is_whole(folder, digests):
                _replace(folder, path, what, digests)
    except IsotestError:
        raise
    except (OSError, NotImplementedError) as error:
        raise SourceError(
            f"source {what!r}: the converted model cannot be kept in {folder.parent}: "
            f"{one_line(error)}; set {CACHE_DIR_VARIABLE} to a folder where there is room for the "
            "model in float32"
        ) from error
    return folder


def _is_whole(folder: Path, digests: ContentDigests) -> bool:
    """Whether the folder holds what was once written there."""
    try:
        expected = (folder / _DIGEST_FILE).read_text(encoding="ascii")
    except (OSError, ValueError):
        return False
    return digests.of(folder) == expected


def _replace(folder: Path, path: Path, what: str, digests: ContentDigests) -> None:
    if folder.exists():
        warnings.warn(
            f"the converted model in {folder} is damaged; {path.name} is converted again",
            CacheWarning,
            stacklevel=2,
        )
        shutil.rmtree(folder)
    # Only the holder of the lock uses this name, so what lies there is a killed process's.
    temporary = folder.with_suffix(TEMPORARY_SUFFIX)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        _log.warning("isotest: converting %s once, into %s", path.name, folder)
        _convert(path, temporary, what)
        written = digests.of(temporary)
        assert written is not None
        (temporary / _DIGEST_FILE).write_text(written, encoding="ascii")
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _convert(path: Path, folder: Path, what: str) -> None:
    """Write ``path`` as ``save_pretrained`` writes a model and its tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    options: dict[str, Any] = {"gguf_file": str(path), "local_files_only": True}
    tokenizer: Any = None
    # Transformers' bar for this does not go by its own settings.
    with quiet(), contextlib.redirect_stderr(io.StringIO()):
        try:
            values, has_tokenizer = _content(path)
            config: Any = AutoConfig.from_pretrained(path.parent, **options)
            module, info = AutoModel.from_pretrained(
                path.parent,
                dtype=torch.float32,
                output_loading_info=True,
                # Reported by name below; transformers' own error points at a report that it logged.
                ignore_mismatched_sizes=True,
                **options,
            )
            if has_tokenizer:
                tokenizer = AutoTokenizer.from_pretrained(path.parent, **options)
        except Exception as error:
            raise SourceError(
                f"source {what!r}: cannot read {path}; expected a whole GGUF file of an "
                f"architecture that transformers reads: {one_line(error)}"
            ) from error
    wrong = [
        f"{name} {tuple(found)} instead of {tuple(expected)}"
        for name, found, expected in info["mismatched_keys"]
    ]
    faults(type(module).__name__, what, missing=info["missing_keys"], surplus=(), wrong=wrong)
    _require_all_read(module, values, what)
    # The model that was read counts as quantised, and such models are not saved.
    plain: Any = from_configuration(config, what, weights=False)
    with quiet():
        plain.save_pretrained(folder, state_dict=module.state_dict())
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)


def _content(path: Path) -> tuple[int, bool]:
    """How many values the file holds outside its head, and whether it holds a tokenizer."""
    from gguf import GGUFReader

    reader = GGUFReader(path)
    values = sum(int(tensor.n_elements) for tensor in reader.tensors if tensor.name not in _HEAD)
    return values, "tokenizer.ggml.tokens" in reader.fields


def _require_all_read(module: Any, values: int, what: str) -> None:
    """Transformers passes over tensors that it has no place for, whole blocks of them included."""
    taken = sum(parameter.numel() for parameter in module.parameters())
    if values != taken:
        raise SourceError(
            f"source {what!r}: the file holds {values:,} values (its head aside), but the "
            f"{type(module).__name__} that its metadata describe takes {taken:,}; transformers "
            "would leave the difference out, so convert the original checkpoint instead"
        )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
