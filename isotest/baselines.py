"""The store of baselines: one file an entry, in folders that mirror the suites."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from isotest.atomic import remove_abandoned
from isotest.cache import cache_folder
from isotest.comparability import comparable, recorded_differences
from isotest.errors import BaselineError
from isotest.profile_json import RECORD_AGAIN, read_profile, write_profile
from isotest.reproduction import changes, reproduces

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from isotest.profile import Profile

__all__ = [
    "BaselineStore",
    "changes",
    "comparable",
    "recorded_differences",
    "reproduces",
]

Entry = tuple[str, str]
"""A suite's id and the name of a model in it."""

_LOCK_SECONDS = 60
_LONGEST_SLUG = 80
# Names that Windows keeps for devices, whatever follows the first dot.
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")


def slug(name: str) -> str:
    """A file name for ``name`` that every file system takes: ``name`` itself where it is one.

    Lower case ASCII letters, digits, ``.``, ``_`` and ``-``, not starting or ending with a dot or
    hyphen. A name that has to be changed gets a short hash of the exact name, so that names which
    differ only in case or punctuation stay apart.

    >>> slug("vit-base")
    'vit-base'
    >>> slug("ViT Base")
    'vit-base-eea016dc'
    """
    text = re.sub(r"[^a-z0-9._-]+", "-", name.lower())[:_LONGEST_SLUG].strip(".-")
    if _RESERVED.fullmatch(text):
        text = f"{text.replace('.', '-')}-"
    if text == name:
        return text
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text.rstrip('-') or 'x'}-{digest[:8]}"


def _relative_path(suite: str, model: str) -> Path:
    return Path(*(slug(part) for part in suite.split("/") if part), f"{slug(model)}.json")


def _called(entry: Entry) -> str:
    suite, model = entry
    return f"model {model!r} of suite {suite!r}" if suite else f"model {model!r}"


class BaselineStore:
    """Baselines below one folder.

    Args:
        root: the folder; made when something is first written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path_of(self, suite: str, model: str) -> Path:
        """Where the baseline of ``model`` in ``suite`` is or would be; always below ``root``.

        >>> BaselineStore(Path("baselines")).path_of("vision/transformers", "vit").as_posix()
        'baselines/vision/transformers/vit.json'
        """
        return self.root / _relative_path(suite, model)

    def collisions(self, entries: Iterable[Entry]) -> list[str]:
        """A message for each pair of entries that cannot both have a baseline, on any file system.

        >>> store = BaselineStore(Path("baselines"))
        >>> store.collisions([("vision/a", "vit"), ("vision/a", "ViT")])
        []
        >>> store.collisions([("a", "x"), ("a/x.json", "y")])  # doctest: +ELLIPSIS
        ["the baseline file baselines/a/x.json of model 'x' of suite 'a' is where a folder ..."]
        """
        owners: dict[Path, Entry] = {}
        messages = []
        for entry in sorted(set(entries)):
            path = self.path_of(*entry)
            other = owners.setdefault(path, entry)
            if other != entry:
                messages.append(
                    f"{_called(other)} and {_called(entry)} would share the baseline file "
                    f"{path.as_posix()}; rename one of them"
                )
        for path, entry in owners.items():
            messages.extend(
                f"the baseline file {folder.as_posix()} of {_called(owners[folder])} is where a "
                f"folder for {_called(entry)} must be; rename one of them"
                for folder in path.parents
                if folder in owners
            )
        return messages

    def find(self, suite: str, model: str) -> Profile | None:
        """The baseline of ``model`` in ``suite``; ``None`` where there is none.

        Raises:
            BaselineError: there is one that cannot be read, is damaged, was edited, lies outside
                the store, or belongs to another entry.
        """
        path = self.path_of(suite, model)
        self._refuse_escape(path)
        if not os.path.lexists(path):
            return None
        profile = read_profile(path)
        if (profile.suite, profile.model) != (suite, model):
            raise BaselineError(
                f"{path}: expected the baseline of {_called((suite, model))}, but it belongs to "
                f"{_called((profile.suite, profile.model))}; {RECORD_AGAIN}"
            )
        return profile

    def write(self, profile: Profile) -> Path:
        """Make ``profile`` the baseline of its entry; returns the file.

        Raises:
            BaselineError: it cannot be written; then an older baseline is untouched.
        """
        path = self.path_of(profile.suite, profile.model)
        self._refuse_escape(path)
        with self.locked():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise BaselineError(
                    f"{path}: its folder could not be made: {error.strerror or error}; make "
                    f"{self.root} a writable folder, then run again"
                ) from error
            remove_abandoned(path.parent)
            write_profile(profile, path)
        return path

    def unclaimed(
        self, claimed: Collection[Path], suite_ids: Collection[str] | None = None
    ) -> list[Path]:
        """The baseline files that no entry claims, sorted.

        Args:
            claimed: ``path_of`` every entry that compares with a baseline, measured or not.
            suite_ids: look only at files of these suites; at all of them by default, so that those
                of a suite that was removed are found.
        """
        # By identity as well: on a file system that ignores case, VIT.json *is* vit.json.
        identities = {(status.st_dev, status.st_ino) for status in map(_status, claimed) if status}
        folders = (
            None if suite_ids is None else {self.path_of(suite, "x").parent for suite in suite_ids}
        )
        found = []
        for folder, _, names in os.walk(self.root):
            if folders is not None and Path(folder) not in folders:
                continue
            for name in names:
                path = Path(folder, name)
                if path.suffix.lower() != ".json" or name.startswith(".") or path in claimed:
                    continue
                status = _status(path)
                if status is None or (status.st_dev, status.st_ino) not in identities:
                    found.append(path)
        return sorted(found)

    def prune(
        self, claimed: Collection[Path], suite_ids: Collection[str] | None = None
    ) -> list[Path]:
        """Remove what ``unclaimed`` finds, and folders that become empty; returns what it removed.

        Raises:
            BaselineError: a file cannot be removed.
        """
        with self.locked():
            paths = self.unclaimed(claimed, suite_ids)
            for path in paths:
                try:
                    path.unlink()
                except OSError as error:
                    raise BaselineError(
                        f"{path}: could not be removed: {error.strerror or error}; make its folder "
                        "writable, then run again"
                    ) from error
                for folder in path.relative_to(self.root).parents[:-1]:
                    # A folder that still holds something stays, and so do those above it.
                    with contextlib.suppress(OSError):
                        (self.root / folder).rmdir()
        return paths

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other isotest processes of this user from changing this store meanwhile.

        Renaming alone keeps every file whole; the lock also keeps an update's reading and writing
        together. Its file lies in the cache folder, so that nothing appears beside the baselines;
        without a writable cache folder there is none.

        Raises:
            BaselineError: another process holds it for over a minute.
        """
        from filelock import FileLock, Timeout

        name = hashlib.sha256(os.fsencode(self.root.resolve())).hexdigest()[:16]
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError, NotImplementedError):
                folder = cache_folder() / "locks"
                folder.mkdir(parents=True, exist_ok=True)
                lock = FileLock(folder / f"{name}.lock", timeout=_LOCK_SECONDS, is_singleton=True)
                try:
                    stack.enter_context(lock)
                except Timeout:
                    raise BaselineError(
                        f"{self.root}: another isotest process has been changing these baselines "
                        f"for over {_LOCK_SECONDS} seconds; wait for it or end it, then run again"
                    ) from None
            yield

    def _refuse_escape(self, path: Path) -> None:
        """Symbolic links below ``root`` may not lead out of it."""
        try:
            resolved = path.resolve()
            inside = resolved.is_relative_to(self.root.resolve())
        except (OSError, RuntimeError) as error:
            raise BaselineError(f"{path}: cannot be resolved: {error}; remove the link") from error
        if not inside:
            raise BaselineError(
                f"{path}: expected a file below {self.root}, but a symbolic link leads to "
                f"{resolved}; remove the link"
            )


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
