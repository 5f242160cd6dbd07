"""``hub:`` with permission to download, against a hub that answers as the real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file

from isotest.models import load_model
from tests.models.hub_server import Hub, Repository, served
from tests.models.test_path import Evil, classifier

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("vit", "torch", "pickle", "code", "gated", "locked")
COMMIT = "89abcdef" * 5


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Repository]:
    base = tmp_path_factory.mktemp("repositories")
    found = {
        name: Repository(base / name.replace("/", "-"), COMMIT)
        for name in (f"tiny/{kind}" for kind in NAMES)
    }
    found["tiny/gated"].gated = True
    found["tiny/locked"].locked = True
    for name, repository in found.items():
        classifier().save_pretrained(repository.folder)
        (repository.folder / "evil.py").write_text("raise RuntimeError('ran')")
        (repository.folder / "README.md").write_text(f"# {name}")
    state = load_file(found["tiny/vit"].folder / "model.safetensors")
    for name, content in (("tiny/torch", state), ("tiny/pickle", {"vit": Evil()})):
        (found[name].folder / "model.safetensors").unlink()
        torch.save(content, found[name].folder / "pytorch_model.bin")
    config = found["tiny/code"].folder / "config.json"
    config.write_text(
        json.dumps({"model_type": "custom", "auto_map": {"AutoConfig": "evil.CustomConfig"}})
    )
    return found


class Client:
    """Another process, with an empty cache, for which ``endpoint`` is the hub."""

    def __init__(self, endpoint: str, folder: Path) -> None:
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGG"))
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.models.hub_client"],
            env={
                **environment,
                "HF_ENDPOINT": endpoint,
                "HF_HOME": str(folder),
                "HF_HUB_DISABLE_XET": "1",
                "NO_PROXY": "127.0.0.1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def load(self, source: str, *, download: bool = True) -> dict[str, Any]:
        """What came of it: commit and digest of the weights, or the error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"source": source, "download": download}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End it."""
        self._process.communicate()


@pytest.fixture(scope="module")
def hub(repositories: dict[str, Repository]) -> Iterator[Hub]:
    with served(repositories) as hub:
        yield hub


@pytest.fixture(scope="module")
def client(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    client = Client(hub.endpoint, tmp_path_factory.mktemp("cache"))
    yield client
    client.close()


def test_downloaded_once_then_from_the_cache(
    hub: Hub, client: Client, repositories: dict[str, Repository]
) -> None:
    folder = repositories["tiny/vit"].folder
    assert client.load("hub:tiny/vit@main", download=False)["error"] == "MissingError"
    assert hub.fetched == []
    first = client.load("hub:tiny/vit@main")
    assert first == {"commit": COMMIT, "weights": load_model(f"path:{folder}").weights}
    # No code, and nothing else that is not needed.
    assert {name.rpartition("/")[2] for name in hub.fetched} == {"config.json", "model.safetensors"}
    fetched = list(hub.fetched)
    for revision in ("@main", "", f"@{COMMIT}"):
        assert client.load(f"hub:tiny/vit{revision}", download=False) == first
    assert hub.fetched == fetched


@pytest.mark.parametrize(
    ("source", "error", "parts"),
    [
        ("hub:tiny/torch@gone", "SourceError", ["no revision 'gone'", "branch, tag or commit"]),
        ("hub:tiny/gated", "MissingError", ["access to tiny/gated is restricted", "hf auth login"]),
        ("hub:tiny/locked", "MissingError", ["no access to tiny/locked", "hf auth login"]),
        ("hub:tiny/absent", "SourceError", ["no model tiny/absent", "hf auth login"]),
        ("hub:tiny/code", "SourceError", ["--isotest-trust-remote-code"]),
        ("hub:tiny/pickle", "SourceError", ["cannot read the weights", "plain tensors"]),
    ],
)
def test_faults_say_what_to_do(
    hub: Hub, client: Client, source: str, error: str, parts: list[str]
) -> None:
    answer = client.load(source)
    assert answer["error"] == error
    for part in (source, *parts):
        assert part in answer["message"]
    assert "\n" not in answer["message"]
    assert not any(name.endswith(".py") for name in hub.fetched)


def test_torch_files_of_plain_tensors_are_fetched_where_nothing_else_is(
    client: Client, repositories: dict[str, Repository]
) -> None:
    expected = load_model(f"path:{repositories['tiny/torch'].folder}")
    assert client.load("hub:tiny/torch") == {"commit": COMMIT, "weights": expected.weights}


def test_a_stopped_hub(repositories: dict[str, Repository], tmp_path: Path) -> None:
    with served(dict(repositories)) as hub:
        client = Client(hub.endpoint, tmp_path)
        fetched = client.load("hub:tiny/vit@main")
    assert fetched["commit"] == COMMIT
    assert client.load("hub:tiny/vit@main", download=False) == fetched
    assert client.load("hub:tiny/torch")["error"] == "MissingError"
    client.close()
