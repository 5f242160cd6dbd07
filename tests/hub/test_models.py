"""``hub:`` models with permission to download, against a hub that answers as the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from isotest.models import load_model
from tests.hub.repositories import COMMIT, TOKENIZER_FILES

if TYPE_CHECKING:
    from tests.hub.client import Client
    from tests.hub.server import Hub, Repository


def test_downloaded_once_then_from_the_cache(
    hub: Hub, client: Client, repositories: dict[str, Repository]
) -> None:
    folder = repositories["tiny/vit"].folder
    assert client.load("hub:tiny/vit@main", download=False)["error"] == "MissingError"
    assert hub.asked == []
    first = client.load("hub:tiny/vit@main")
    assert first == {"commit": COMMIT, "weights": load_model(f"path:{folder}").weights}
    # No code and no card; of the rest, once, what any modality's preprocessing may need.
    expected = {"config.json", "model.safetensors", *TOKENIZER_FILES}
    assert sorted(hub.fetched) == sorted(f"tiny/vit/{name}" for name in expected)
    hub.asked.clear()
    for revision in ("@main", "", f"@{COMMIT}"):
        assert client.load(f"hub:tiny/vit{revision}", download=False) == first
    assert hub.asked == []


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("hub:tiny/code", ["--isotest-trust-remote-code"]),
        ("hub:tiny/pickle", ["cannot read the weights", "plain tensors"]),
        ("hub:tiny/bare", ["tiny/bare has no weights that can be read", "model.safetensors"]),
    ],
)
def test_faults_of_what_was_downloaded(
    hub: Hub, client: Client, source: str, parts: list[str]
) -> None:
    answer = client.load(source)
    assert answer["error"] == "SourceError"
    for part in (source, *parts):
        assert part in answer["message"]
    assert "\n" not in answer["message"]
    assert not any(name.endswith(".py") for name in hub.fetched)


@pytest.mark.parametrize("kind", ["torch", "sharded"])
def test_every_form_of_weights(
    client: Client, repositories: dict[str, Repository], kind: str
) -> None:
    expected = load_model(f"path:{repositories[f'tiny/{kind}'].folder}")
    assert client.load(f"hub:tiny/{kind}") == {"commit": COMMIT, "weights": expected.weights}
    assert client.load(f"hub:tiny/{kind}", download=False)["weights"] == expected.weights
