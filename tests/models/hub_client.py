"""Loads what it is told to, a JSON object a line, and answers with one: a process of its own.

Where the hub is, huggingface_hub learns from the environment when it is imported.
"""

from __future__ import annotations

import json
import sys

from isotest.errors import IsotestError
from isotest.models import load_model

for line in sys.stdin:
    request = json.loads(line)
    try:
        loaded = load_model(request["source"], download=request["download"])
        answer = {"commit": loaded.commit, "weights": loaded.weights}
    except IsotestError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(answer), flush=True)
