"""``sample:NAME``: the data that ship with isotest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import isotest
from isotest.data.columns import Columns
from isotest.data.digits import SPLITS, DigitRows
from isotest.data.file import JsonLinesRows
from isotest.data.folder import FolderRows
from isotest.errors import SourceError
from isotest.source import Source, did_you_mean

if TYPE_CHECKING:
    from isotest.data.kind import Kind
    from isotest.data.rows import Rows

SAMPLES = Path(isotest.__file__).parent / "samples"


def open_sample(source: Source, *, base: Path, download: bool, kind: Kind) -> Rows:
    """One of ``kind.samples``; ``digits`` takes ``split=training|held-out``."""
    name = source.location
    if name not in kind.samples:
        raise SourceError(
            f"data source {str(source)!r}: no sample {kind.plural} {name!r}"
            f"{did_you_mean(name, kind.samples)}"
        )
    source.require_options(("split",) if name == "digits" else ())
    if name == "digits":
        split = source.options.get("split", "all")
        if split not in SPLITS:
            raise SourceError(
                f"data source {str(source)!r}: unknown split {split!r}{did_you_mean(split, SPLITS)}"
            )
        return DigitRows(split)
    if (lines := SAMPLES / name / f"{name}.jsonl").is_file():
        return JsonLinesRows(lines, Columns(kind, "text", "group", None))
    return FolderRows(SAMPLES / name, kind)
