"""Does what it is told to, a JSON object a line, and answers with one: a process of its own.

Where the hub is, and where its cache is, huggingface_hub learns from the environment when it is
imported. So a :class:`Client` runs this file in another process, once for many requests.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from isotest.errors import IsotestError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def environment(endpoint: str, home: Path, token: str | None = None) -> dict[str, str]:
    """This process's environment, with ``endpoint`` as the hub and an own cache below ``home``."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGG"))}
    own = {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        # datasets counts its uses at another server.
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        "NO_PROXY": "127.0.0.1,localhost",
        "OMP_NUM_THREADS": "1",
        # The home folder of whoever runs the tests may hold a token.
        "HF_TOKEN_PATH": str(home / "token"),
    }
    return kept | own | ({"HF_TOKEN": token} if token else {})


class Client:
    """A process with an empty cache below ``home``, for which ``endpoint`` is the hub."""

    def __init__(self, endpoint: str, home: Path) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hub.client"],
            env=environment(endpoint, home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def load(
        self, source: str, *, download: bool = True, token: str | None = None
    ) -> dict[str, Any]:
        """A model: the commit and the digest of its weights, or the error."""
        return self._ask(do="load", source=source, download=download, token=token)

    def read(
        self,
        source: str,
        *,
        modality: str = "vision",
        samples: int | str = "all",
        download: bool = True,
        token: str | None = None,
    ) -> dict[str, Any]:
        """A data source: its samples and what it says of itself, or the error."""
        return self._ask(
            do="read",
            source=source,
            modality=modality,
            samples=samples,
            download=download,
            token=token,
        )

    def prepare(
        self, name: str, *, token: str | None = None, **options: str | None
    ) -> dict[str, Any]:
        """``datasets.load_dataset``, as a user would call it: the rows of each split."""
        return self._ask(do="prepare", name=name, token=token, options=options)

    def cached(self, repository: str, file: str) -> list[Path]:
        """The files of that name (a glob) that count as downloaded."""
        folder = "--".join(["models", *repository.split("/")])
        return sorted(self.home.glob(f"hub/{folder}/snapshots/*/{file}"))

    def incomplete(self) -> list[Path]:
        """What interrupted downloads left behind."""
        return sorted(self.home.glob("hub/**/*.incomplete"))

    def close(self) -> None:
        """End it; it has nothing to finish."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, **request: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert "traceback" not in answer, answer["traceback"]
        return answer


def _answer(do: str, token: str | None, **request: Any) -> dict[str, object]:
    os.environ.pop("HF_TOKEN", None)
    if token:
        os.environ["HF_TOKEN"] = token
    tasks: dict[str, Callable[..., dict[str, object]]] = {
        "load": _load,
        "read": _read,
        "prepare": _prepare,
    }
    try:
        return tasks[do](**request)
    except IsotestError as error:
        return {"error": type(error).__name__, "message": str(error)}
    except Exception:
        import traceback

        return {"traceback": traceback.format_exc()}


def _load(source: str, download: bool) -> dict[str, object]:
    from isotest.models import load_model

    loaded = load_model(source, download=download)
    return {"commit": loaded.commit, "weights": loaded.weights}


def _read(source: str, modality: str, samples: Any, download: bool) -> dict[str, object]:
    import datasets

    from isotest.data import open_data

    # What datasets waits for threads of its own after each stream: seconds.
    datasets.config.SLEEP_TIME_ON_THREADS_SHUTDOWN = 0
    data = open_data(source, modality=modality, samples=samples, download=download)
    samples = list(data)
    return {
        "digests": [sample.digest.hex() for sample in samples],
        "units": [sample.unit for sample in samples],
        "texts": [sample.content for sample in samples if isinstance(sample.content, str)],
        "description": dict(data.describe()),
    }


def _prepare(name: str, options: dict[str, str]) -> dict[str, object]:
    import datasets

    splits = datasets.load_dataset(name, **options)
    return {
        split: [hashlib.sha256(repr(row).encode()).hexdigest() for row in rows]
        for split, rows in splits.items()
    }


if __name__ == "__main__":
    # Whatever else is printed here must not be taken for an answer.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(_answer(**json.loads(line))), file=answers, flush=True)
