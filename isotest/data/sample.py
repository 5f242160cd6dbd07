"""``sample:NAME``: the data that ship with isotest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import isotest
from isotest.data.digits import SPLITS, DigitRows
from isotest.data.folder import FolderRows
from isotest.errors import SourceError
from isotest.source import Source, did_you_mean

if TYPE_CHECKING:
    from isotest.data.rows import Rows

SAMPLES = Path(isotest.__file__).parent / "samples"


def open_sample(source: Source, *, base: Path, download: bool) -> Rows:
    """``photographs``, or ``digits`` with ``split=training`` or ``split=held-out``."""
    if source.location == "photographs":
        source.require_options(())
        return FolderRows(SAMPLES / "photographs")
    if source.location == "digits":
        source.require_options(("split",))
        split = source.options.get("split", "all")
        if split not in SPLITS:
            raise SourceError(
                f"data source {str(source)!r}: unknown split {split!r}{did_you_mean(split, SPLITS)}"
            )
        return DigitRows(split)
    known = ("photographs", "digits")
    raise SourceError(
        f"data source {str(source)!r}: no sample data {source.location!r}"
        f"{did_you_mean(source.location, known)}"
    )
