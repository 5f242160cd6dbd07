"""Redirects, interruption, resumption and files that are cut short."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from tests.hub.repositories import COMMIT, IMAGES, TEXTS
from tests.hub.server import Fault

if TYPE_CHECKING:
    from tests.hub.client import Client
    from tests.hub.server import Hub, Repository

PARQUET = "datasets/tiny/scenes/data/validation-00000-of-00001.parquet"
CHUNK = 10 * 2**20
"""huggingface_hub keeps what it has received in pieces of this size."""


def test_an_interrupted_download_is_resumed(
    hub: Hub, client: Client, repositories: dict[str, Repository]
) -> None:
    file = "tiny/heavy/model.safetensors"
    content = (repositories["tiny/heavy"].folder / "model.safetensors").read_bytes()
    assert len(content) > 2 * CHUNK
    hub.faults[file] = Fault(cut=CHUNK + 12_345)
    assert client.load("hub:tiny/heavy")["commit"] == COMMIT
    # Once from the beginning, then from the last piece that had arrived whole.
    assert hub.ranges(file) == [None, f"bytes={CHUNK}-"]
    (cached,) = client.cached("tiny/heavy", "model.safetensors")
    assert hashlib.sha256(cached.read_bytes()).digest() == hashlib.sha256(content).digest()
    assert client.incomplete() == []


def test_a_file_that_the_store_has_cut_short_is_refused(hub: Hub, client: Client) -> None:
    """Its ``Content-Length`` is that of the cut file; the hub announced the size of the whole."""
    shard = "model-00002-of-00003.safetensors"
    hub.faults[f"tiny/shards/{shard}"] = Fault(short=1000)
    answer = client.load("hub:tiny/shards")
    assert answer["error"] == "MissingError"
    for part in ("hub:tiny/shards", "fetching the model tiny/shards", "size 1000", "run again"):
        assert part in answer["message"]
    assert "force_download" not in answer["message"]
    assert "\n" not in answer["message"]
    assert shard not in {path.name for path in client.cached("tiny/shards", "*.safetensors")}
    assert client.incomplete() == []
    # Nothing of it is taken for whole later, with or without the hub.
    offline = client.load("hub:tiny/shards", download=False)
    assert offline["error"] == "MissingError"
    assert "a part of tiny/shards is not in the Hugging Face cache" in offline["message"]
    hub.faults.clear()
    hub.asked.clear()
    again = client.load("hub:tiny/shards")
    assert again["commit"] == COMMIT
    assert hub.fetched == [f"tiny/shards/{shard}"]
    assert client.load("hub:tiny/shards", download=False) == again


def test_a_connection_that_always_breaks_is_given_up(hub: Hub, client: Client) -> None:
    """``Content-Length`` promises more than ever arrives."""
    hub.faults["tiny/broken/model.safetensors"] = Fault(cut=1000, once=False)
    answer = client.load("hub:tiny/broken")
    assert answer["error"] == "MissingError"
    assert "received 1000 bytes" in answer["message"]
    assert answer["message"].endswith("check the network and the disk, then run again")
    assert len(hub.ranges("tiny/broken/model.safetensors")) > 1
    assert client.cached("tiny/broken", "*.safetensors") == []
    assert client.incomplete() == []
    offline = client.load("hub:tiny/broken", download=False)
    assert "a part of tiny/broken is not in the Hugging Face cache" in offline["message"]


def test_a_stream_that_breaks_is_taken_up_again(hub: Hub, client: Client) -> None:
    source = "hub:tiny/scenes?split=validation&group=scene"
    whole = client.read(source, samples=IMAGES)
    assert sorted(whole["units"]) == [scene for scene in range(6) for _ in range(2)]
    unbroken = hub.ranges(PARQUET)
    hub.asked.clear()
    hub.faults[PARQUET] = Fault(cut=1000)
    assert client.read(source, samples=IMAGES) == whole
    # The part that broke off is asked for once more, and nothing else is.
    assert hub.ranges(PARQUET) == [unbroken[0], *unbroken]


def test_a_data_file_that_arrives_damaged(hub: Hub, client: Client) -> None:
    hub.faults[PARQUET] = Fault(short=1000)
    answer = client.read("hub:tiny/scenes?split=validation")
    assert answer["error"] == "SourceError"
    assert "its files are damaged, or arrive damaged" in answer["message"]
    assert "Parquet" in answer["message"]


def test_a_copy_is_not_prepared_from_a_file_that_is_cut_short(hub: Hub, client: Client) -> None:
    hub.faults["datasets/tiny/sentences/data/test-00000-of-00001.parquet"] = Fault(short=500)
    with pytest.raises(AssertionError, match="Consistency check failed"):
        client.prepare("tiny/sentences")
    source = "hub:tiny/sentences?split=test"
    answer = client.read(source, modality="text", download=False)
    assert answer["error"] == "MissingError"
    assert "tiny/sentences is not on this machine" in answer["message"]
    hub.faults.clear()
    prepared = client.prepare("tiny/sentences")
    assert {split: len(rows) for split, rows in prepared.items()} == {
        split: len(texts) for split, texts in TEXTS.items()
    }
    hub.asked.clear()
    answer = client.read(source, modality="text", download=False)
    assert answer["texts"] == TEXTS["test"]
    assert hub.asked == []
