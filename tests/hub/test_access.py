"""Terms, tokens, names and revisions: what a run may not have, and what it says then."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import huggingface_hub.constants
import pytest

from isotest.data import open_data
from isotest.errors import MissingError
from isotest.models import load_model
from tests.hub.client import Client
from tests.hub.repositories import COMMIT, IMAGES, READER, STRANGER
from tests.hub.server import Asked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hub.server import Hub

MISTYPED = "hf_mistyped"
LOG_IN = "'hf auth login', or HF_TOKEN"
TERMS = "accept its terms on the page of the {kind} tiny/gated on the hub"


class Refusal(NamedTuple):
    """What is asked for, with which token, and what the one message has to say."""

    name: str
    token: str | None
    error: str
    says: tuple[str, ...]


REFUSALS = {
    "gated": Refusal(
        "tiny/gated",
        None,
        "MissingError",
        (
            *("the {kind} tiny/gated is gated, and no token was sent", TERMS),
            *("a read token of the account that accepted them", LOG_IN),
        ),
    ),
    "gated, another account": Refusal(
        "tiny/gated",
        STRANGER,
        "MissingError",
        (
            *("the account of the token that was sent has no access", f"{TERMS} with that account"),
            *("a read token of an account that accepted them", LOG_IN, "fine-grained"),
        ),
    ),
    "mistyped token": Refusal(
        "tiny/gated",
        MISTYPED,
        "MissingError",
        ("does not accept the token that was sent", "401", "a read token that is valid", LOG_IN),
    ),
    "locked": Refusal(
        "tiny/locked",
        None,
        "MissingError",
        ("shows the {kind} tiny/locked to nobody without a token", "401", LOG_IN),
    ),
    "private": Refusal(
        "tiny/private",
        None,
        "SourceError",
        ("the hub has no {kind} tiny/private; correct the name", "if it is private", LOG_IN),
    ),
    "private, another account": Refusal(
        "tiny/private",
        STRANGER,
        "SourceError",
        ("the hub has no {kind} tiny/private; correct the name", "an account that may see it"),
    ),
    "absent": Refusal(
        "tiny/absent", None, "SourceError", ("the hub has no {kind} tiny/absent; correct the name",)
    ),
    "absent, with a token": Refusal(
        "tiny/absent",
        READER,
        "SourceError",
        ("the hub has no {kind} tiny/absent; correct the name",),
    ),
    "wrong revision": Refusal(
        "tiny/gated@gone",
        READER,
        "SourceError",
        ("tiny/gated has no revision 'gone'; give a branch, tag or commit that it has",),
    ),
    "down": Refusal(
        "tiny/down",
        None,
        "MissingError",
        ("the hub answers 503 Service Unavailable for the {kind} tiny/down; run again later",),
    ),
}


@pytest.mark.parametrize("kind", ["model", "data set"])
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_refusals_say_what_to_do(client: Client, kind: str, refusal: Refusal) -> None:
    options = "" if kind == "model" else "?split=validation"
    source = f"hub:{refusal.name}{options}"
    ask = client.load if kind == "model" else client.read
    answer = ask(source, token=refusal.token)
    assert answer["error"] == refusal.error
    for part in (repr(source), *refusal.says):
        assert part.format(kind=kind) in answer["message"]
    assert "\n" not in answer["message"]
    # Where the hub is, its client knows; an address of another one would mislead.
    assert "http" not in answer["message"]


def test_with_access_the_hub_is_told_the_token_and_the_store_is_not(
    hub: Hub, client: Client
) -> None:
    assert client.load("hub:tiny/members", token=READER)["commit"] == COMMIT
    weights = [each for each in hub.asked if each.file == "tiny/members/model.safetensors"]
    assert weights == [
        Asked("HEAD", "tiny/members/model.safetensors", 302, token=READER),
        Asked("GET", "tiny/members/model.safetensors", 200, stored=True),
    ]
    source = "hub:tiny/members?split=validation"
    assert len(client.read(source, samples=IMAGES, token=READER)["digests"]) == IMAGES
    assert {each.token for each in hub.asked if not each.stored} == {READER}
    assert {each.token for each in hub.asked if each.stored} == {None}


def test_data_sets_that_come_as_code_are_never_run(client: Client) -> None:
    answer = client.read("hub:tiny/scripted?split=train")
    assert answer["error"] == "SourceError"
    assert "scripts are no longer supported" in answer["message"]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("split=validation&config=dusk", "'dusk' not found. Available: ['default']"),
        ("split=val", "no split 'val'"),
        ("split=validation&image=img", "no column 'img'; did you mean 'image'?"),
    ],
)
def test_parts_that_a_data_set_does_not_have(client: Client, options: str, part: str) -> None:
    answer = client.read(f"hub:tiny/scenes?{options}")
    assert answer["error"] == "SourceError"
    assert f"hub:tiny/scenes?{options}" in answer["message"]
    assert part in answer["message"]


def test_several_configurations(client: Client) -> None:
    answer = client.read("hub:tiny/days?split=train", modality="text", samples=1)
    assert answer["error"] == "SourceError"
    assert "available configs: ['day', 'night']; name one with config=…" in answer["message"]
    answer = client.read("hub:tiny/days?split=train&config=night", modality="text", samples=1)
    assert len(answer["texts"]) == 1


@pytest.mark.parametrize("open_it", [load_model, partial(open_data, samples=2)])
def test_a_user_who_forbids_the_network(
    open_it: Callable[..., object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(MissingError, match="is forbidden by HF_HUB_OFFLINE; unset it"):
        open_it("hub:tiny/scenes", download=True)


def test_no_network(tmp_path: Path) -> None:
    client = Client("http://127.0.0.1:9", tmp_path)  # the port of discard, which nobody serves
    for answer, kind in (
        (client.load("hub:tiny/vit"), "model tiny/vit"),
        (client.read("hub:tiny/scenes?split=validation"), "data set tiny/scenes"),
    ):
        assert answer["error"] == "MissingError"
        for part in (f"fetching the {kind} from the hub failed", "check the network", "refused"):
            assert part in answer["message"]
    client.close()
