"""What a model source will yield, by content and without building it (torch-free).

Two sources with the same identity yield the same module under the same library versions. Where
that cannot be promised there is no identity, and the model is measured each time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import isotest
from isotest.blocks.tasks.identity import task_source
from isotest.content import ContentDigests, combined_digest
from isotest.errors import SourceError
from isotest.source import TOKENIZER_SCHEMES, parse_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.source import Source

SAMPLES = Path(isotest.__file__).parent / "samples" / "models"


def model_identity(
    source: Source,
    *,
    config: Mapping[str, object] | None,
    base: Path | None,
    download: bool = False,
    trust_remote_code: bool = False,
    digests: ContentDigests | None = None,
) -> str | None:
    """The identity of what ``source`` yields; ``None`` where there is none.

    Args:
        source: the model source.
        config: overrides of the architecture's configuration, from the suite.
        base: what relative paths start from; the working directory by default.
        download: whether the hub may be reached, so that a branch may move before it is loaded.
        trust_remote_code: whether code that comes with the weights may run; it can do anything.
        digests: remembers the digests of large files.

    Returns:
        64 hexadecimal digits, or ``None``: arbitrary code, or something that is not here (whoever
        loads it says what is missing).
    """
    digests = digests or ContentDigests()
    if trust_remote_code and source.scheme in ("hub", "path", "package"):
        return None
    config = dict(config or {})
    content = _content(source, config, base or Path.cwd(), download, digests)
    return None if content is None else combined_digest([*content, config])


def tokenizer_identity(
    named: str | None,
    *,
    base: Path | None,
    download: bool = False,
    digests: ContentDigests | None = None,
) -> str | None:
    """The identity of a tokenizer that a suite names; ``""`` where it names none or a built-in one.

    A model's own tokenizer belongs to the identity of the model.

    Returns:
        64 hexadecimal digits, ``""``, or ``None``: arbitrary code, something that is not here, or
        a malformed source (whoever loads it says what is wrong).
    """
    if named is None or ":" not in named:
        return ""
    try:
        source = parse_source(named, TOKENIZER_SCHEMES)
    except SourceError:
        return None
    digests = digests or ContentDigests()
    if source.scheme == "sample":
        content: list[object] | None = [digests.of(SAMPLES.parent / "tokenizer")]
    elif source.scheme == "hub":
        content = _cached_snapshot(source.location, source.revision, download, "tokenizer.json")
    else:
        content = _content(source, {}, base or Path.cwd(), download, digests)
    return None if content is None else combined_digest([named, *content])


def _content(
    source: Source,
    config: Mapping[str, object],
    base: Path,
    download: bool,
    digests: ContentDigests,
) -> list[object] | None:
    """Everything that decides what ``source`` yields, beside the library versions."""
    named = [source.scheme, source.location, dict(source.options)]
    found: object
    match source.scheme:
        case "init" | "block":
            return [*named]
        case "timm":
            # Weights from elsewhere would be under no commit or content that is named here.
            brings = any(key.startswith(("pretrained", "checkpoint")) for key in config)
            untrained = source.options.get("pretrained") == "false" and not brings
            return [*named] if untrained else None
        case "sample":
            found = digests.of(SAMPLES / source.location) if "/" not in source.location else None
        case "package":
            found = digests.of_distribution(source.location.partition("/")[0])
        case "path":
            path = base / Path(source.location).expanduser()
            found = digests.of(path)
            # A folder may be called anything; of a file, the suffix says how it is read.
            named[1] = path.suffix if path.is_file() else ""
        case "task":
            # Where a file of weights lies is no matter; what is in it is.
            task = task_source(source)
            named = [task.task, task.design, task.variant or ""]
            found = digests.of(task.file(base))
        case "hub":
            found = _cached_snapshot(source.location, source.revision, download)
        case _:
            return None
    return None if found is None else [*named, found]


def _cached_snapshot(
    repository: str, revision: str | None, download: bool, file: str = "config.json"
) -> list[object] | None:
    """Commit and file names of what ``repository`` now resolves to in the hub's cache."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    is_commit = revision is not None and len(revision) == 40
    if download and not is_commit:
        return None
    try:
        found = try_to_load_from_cache(repository, file, revision=revision)
    except HFValidationError:
        return None
    if not isinstance(found, str):
        return None
    # The commit decides the content of the files, but not which of them were fetched.
    folder = Path(found).parent
    return [folder.name, sorted(path.name for path in folder.iterdir())]
