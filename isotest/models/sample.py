"""``sample:NAME``: a small trained model that ships with isotest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isotest.errors import SourceError
from isotest.models.checkpoint import from_folder
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from isotest.models.registry import Built, Request

SAMPLES = Path(__file__).parents[1] / "samples" / "models"


def build(request: Request) -> Built:
    """The base model of a shipped sample.

    Raises:
        SourceError: there is no sample of this name.
    """
    source = request.source
    source.require_options(())
    # Looked up among the names there are, never joined to a path: the name comes from a suite.
    known = {path.parent.name: path.parent for path in sorted(SAMPLES.glob("*/config.json"))}
    if source.location not in known:
        hint = did_you_mean(source.location, known) if known else "; this installation has none"
        raise SourceError(f"source {str(source)!r}: no such sample model{hint}")
    return from_folder(known[source.location], request)
