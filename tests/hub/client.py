"""Loads what it is told to, a JSON object a line, and answers with one: a process of its own.

Where the hub is, huggingface_hub learns from the environment when it is imported.
"""

from __future__ import annotations

import json
import sys

from isotest.errors import IsotestError
from isotest.models import load_model


def answer(source: str, *, download: bool) -> dict[str, str | None]:
    """Commit and digest of the weights, or the error."""
    try:
        loaded = load_model(source, download=download)
    except IsotestError as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {"commit": loaded.commit, "weights": loaded.weights}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), flush=True)
