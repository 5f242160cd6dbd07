"""``hub:``: the cache only, and not one packet without permission."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import huggingface_hub.constants
import pytest

from isotest.errors import MissingError, SourceError
from isotest.models import load_model
from tests.models.test_path import classifier

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    attempts: list[Any] = []

    def refuse(*args: Any, **_options: Any) -> Any:
        attempts.append(args)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return attempts


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub cache as huggingface_hub lays it out, with one repository in it."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--owner--tiny-vit"
    classifier().save_pretrained(repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    return repository


@pytest.mark.parametrize("revision", ["", "@main", f"@{COMMIT}"])
def test_a_cached_model_loads_and_names_its_commit(
    cache: Path, no_network: list[Any], revision: str
) -> None:
    loaded = load_model(f"hub:owner/tiny-vit{revision}")
    assert loaded.commit == COMMIT
    assert loaded.weights == load_model(f"path:{cache / 'snapshots' / COMMIT}").weights
    assert no_network == []


@pytest.mark.parametrize(
    "source", ["hub:owner/other", "hub:owner/tiny-vit@branch", f"hub:owner/tiny-vit@{'a' * 40}"]
)
def test_what_is_not_cached_is_missing(cache: Path, no_network: list[Any], source: str) -> None:
    with pytest.raises(MissingError) as caught:
        load_model(source)
    assert source.partition("@")[0].removeprefix("hub:") in caught.value.what
    assert "--isotest-download" in caught.value.remedy
    assert no_network == []


def test_a_configuration_without_its_weights_is_missing(cache: Path, no_network: list[Any]) -> None:
    (cache / "snapshots" / COMMIT / "model.safetensors").unlink()
    with pytest.raises(MissingError, match="the weights of owner/tiny-vit"):
        load_model("hub:owner/tiny-vit")
    assert no_network == []


def test_downloading_is_tried_only_when_allowed(cache: Path, no_network: list[Any]) -> None:
    with pytest.raises(MissingError, match=r"hub cannot be reached|fetching .* failed"):
        load_model("hub:owner/other", download=True)


def test_absent_shards_are_missing(cache: Path) -> None:
    folder = cache / "snapshots" / COMMIT
    (folder / "model.safetensors").unlink()
    classifier().save_pretrained(folder, max_shard_size="50KB")
    assert load_model("hub:owner/tiny-vit").weights
    gone = max(folder.glob("model-*-of-*.safetensors"))
    gone.unlink()
    with pytest.raises(MissingError, match=f"1 of the weight files .*{gone.name}"):
        load_model("hub:owner/tiny-vit")


def test_functions_stay_offline_too(cache: Path, no_network: list[Any]) -> None:
    with pytest.raises(MissingError, match="wants something from the hub"):
        load_model("python:tests.models.code:from_the_hub")
    assert no_network == []
    assert not huggingface_hub.constants.HF_HUB_OFFLINE


def test_the_entrys_architecture_needs_no_cached_weights(cache: Path, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    (cache / "snapshots" / COMMIT / "model.safetensors").unlink()
    save_file(classifier(seed=3).state_dict(), tmp_path / "x.safetensors")
    loaded = load_model("path:x.safetensors", base=tmp_path, like="hub:owner/tiny-vit")
    assert loaded.commit is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("hub:a/b/c", "expected hub:OWNER/NAME"),
        ("hub:../../etc", "expected hub:OWNER/NAME"),
        ("hub:owner/tiny-vit?x=1", "unknown option 'x'; hub: takes none"),
        ("hub:owner/..", "hub:owner/.."),
    ],
)
def test_bad_input_is_one_clear_message(cache: Path, source: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        load_model(source)
    assert message in str(caught.value)
