"""Measured profiles kept by content, so that an unchanged model is not measured again."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from isotest.content import ContentDigests, combined_digest
from isotest.errors import BaselineError
from isotest.profile_json import read_profile, write_profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.profile import Profile

CACHE_DIR_VARIABLE = "ISOTEST_CACHE_DIR"

# Whatever decides the numbers of a forward pass or of a statistic, or decodes the data.
_LIBRARIES = (
    "torch",
    "torchvision",
    "transformers",
    "tokenizers",
    "timm",
    "safetensors",
    "gguf",
    "numpy",
    "scipy",
    "pillow",
    "datasets",
)


class CacheWarning(UserWarning):
    """The cache is damaged or cannot be written; what it lacks is measured again."""


def cache_folder() -> Path:
    """Where isotest keeps what can always be made again.

    ``$ISOTEST_CACHE_DIR``, else the user's cache folder as the platform has it. Deleting it costs
    only time.
    """
    chosen = os.environ.get(CACHE_DIR_VARIABLE)
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("isotest", appauthor=False))


@functools.cache
def own_source_digest() -> str:
    """Of isotest's source files, so that a change of a formula never reads older numbers."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


class ProfileCache:
    """Profiles by the key of their measurement.

    Args:
        folder: where; ``cache_folder()`` by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = cache_folder() if folder is None else folder
        self._told_unwritable = False

    def key(self, parts: Mapping[str, object]) -> str:
        """The key of a measurement: the same key promises the same numbers.

        The version of Python, those of the libraries, the machine's architecture and isotest's own
        source are part of it by themselves.

        Args:
            parts: everything else that decides the numbers, JSON-able: the identities of model and
                data, the source as text, samples, seed, representation, layers, device, dtype, …

        Returns:
            64 hexadecimal digits.
        """
        return combined_digest(
            {
                "parts": dict(parts),
                "python": platform.python_version(),
                "machine": f"{sys.platform}-{platform.machine()}",
                "libraries": {name: _version(name) for name in _LIBRARIES},
                "isotest": own_source_digest(),
            }
        )

    @functools.cached_property
    def digests(self) -> ContentDigests:
        """Digests of large files, remembered in this folder."""
        return ContentDigests(self.folder)

    def get(self, key: str) -> Profile | None:
        """The profile under ``key``; ``None`` where there is none or it is damaged.

        Warns:
            CacheWarning: the entry is damaged.
        """
        path = self.path_of(key)
        if not os.path.lexists(path):
            return None
        try:
            return read_profile(path, remedy="it is measured again")
        except BaselineError as error:
            warnings.warn(f"damaged cache entry {error}", CacheWarning, stacklevel=2)
            return None

    def put(self, key: str, profile: Profile) -> Path | None:
        """Keep ``profile`` under ``key``; returns its file, ``None`` where none was written.

        Warns:
            CacheWarning: once, when the folder cannot be written; the run goes on without.
        """
        path = self.path_of(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_profile(profile, path)
            return path
        except (OSError, BaselineError) as error:
            if not self._told_unwritable:
                self._told_unwritable = True
                warnings.warn(
                    f"measurements cannot be cached in {self.folder}: {error}; set "
                    f"{CACHE_DIR_VARIABLE} to a writable folder to save time",
                    CacheWarning,
                    stacklevel=2,
                )
            return None

    def path_of(self, key: str) -> Path:
        """Where the profile under ``key`` is or would be."""
        return self.folder / "profiles" / key[:2] / f"{key}.json"
