"""What a model source will yield, by content and without building it (torch-free).

Two sources with the same identity yield the same module under the same library versions. Where
that cannot be promised there is no identity, and the model is measured each time.
"""

from __future__ import annotations

import json
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

import isotest
from isotest.content import ContentDigests, combined_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.source import Source

SAMPLES = Path(isotest.__file__).parent / "samples" / "models"


def model_identity(
    source: Source,
    *,
    config: Mapping[str, object] | None,
    base: Path | None,
    like: Source | None = None,
    download: bool = False,
    trust_remote_code: bool = False,
    digests: ContentDigests | None = None,
) -> str | None:
    """The identity of what ``source`` yields; ``None`` where there is none.

    Args:
        source: the model source.
        config: overrides of the architecture's configuration, from the suite.
        base: what relative paths start from; the working directory by default.
        like: the source that this one stands in for, which may give it an architecture.
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
    identities = []
    for each in (source, like):
        content = each and _content(each, base or Path.cwd(), download, digests)
        if each and content is None:
            return None
        identities.append(content)
    return combined_digest([*identities, dict(config or {})])


def _content(
    source: Source, base: Path, download: bool, digests: ContentDigests
) -> list[object] | None:
    """Everything that decides what ``source`` yields, beside the library versions."""
    named = [source.scheme, source.location, dict(source.options)]
    found: object
    match source.scheme:
        case "init":
            return [*named]
        case "timm":
            # Pretrained weights would come from the hub, under no commit that could be named.
            return [*named] if source.options.get("pretrained") == "false" else None
        case "sample":
            found = digests.of(SAMPLES / source.location) if "/" not in source.location else None
        case "package":
            found = distribution_digest(source.location.partition("/")[0], digests)
        case "path":
            path = base / Path(source.location).expanduser()
            found = digests.of(path)
            # A folder may be called anything; of a file, the suffix says how it is read.
            named[1] = path.suffix if path.is_file() else ""
        case "hub":
            found = _cached_snapshot(source.location, source.revision, download)
        case _:
            return None
    return None if found is None else [*named, found]


def distribution_digest(name: str, digests: ContentDigests) -> str | None:
    """Of the files of an installed distribution; ``None`` if not installed, or as editable."""
    try:
        found = distribution(name)
    except (PackageNotFoundError, ValueError):
        return None
    if _is_editable(found) or not found.files:
        return None
    return digests.of_files(
        (file.as_posix(), Path(str(found.locate_file(file))))
        for file in found.files
        if "__pycache__" not in file.parts
    )


def _is_editable(found: Distribution) -> bool:
    """Whether its files are somewhere that its own record does not list."""
    try:
        record = json.loads(found.read_text("direct_url.json") or "{}")
        return bool(record.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return True


def _cached_snapshot(repository: str, revision: str | None, download: bool) -> list[object] | None:
    """Commit and file names of what ``repository`` now resolves to in the hub's cache."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    is_commit = revision is not None and len(revision) == 40
    if download and not is_commit:
        return None
    try:
        found = try_to_load_from_cache(repository, "config.json", revision=revision)
    except HFValidationError:
        return None
    if not isinstance(found, str):
        return None
    # The commit decides the content of the files, but not which of them were fetched.
    folder = Path(found).parent
    return [folder.name, sorted(path.name for path in folder.iterdir())]
