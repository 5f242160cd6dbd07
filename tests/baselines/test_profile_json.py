"""Reading believes nothing, writing changes nothing."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotest.errors import BaselineError
from isotest.estimate import Estimate
from isotest.profile import BlockProperty, LayerProfile, Profile, Provenance
from isotest.profile_json import (
    FORMAT_VERSION,
    RECORD_AGAIN,
    dump_profile,
    load_profile,
    read_profile,
    write_profile,
)
from tests.baselines.cases import conditions, edit, layer, profile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.text(min_size=1, max_size=12)
SETTINGS = st.one_of(st.none(), st.booleans(), st.integers(), FLOATS, st.text())


@st.composite
def estimates(draw: st.DrawFn, blocks: int) -> Estimate:
    if draw(st.booleans()):
        return Estimate(None, undefined=draw(NAMES), vacuous=draw(st.booleans()))
    values = draw(st.lists(FLOATS, min_size=blocks, max_size=blocks))
    return Estimate(draw(FLOATS), draw(st.none() | st.floats(0, 1e300)), tuple(values))


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    layers = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        counts = draw(st.lists(st.integers(0, 99), min_size=len(sizes), max_size=len(sizes)))
        layers.append(
            LayerProfile(
                name=name,
                module=draw(st.text()),
                width=draw(st.integers(1, 4096)),
                representations=sum(counts),
                zero_length=draw(st.integers(0, sum(counts))),
                block_representations=tuple(counts),
                estimates=draw(st.dictionaries(NAMES, estimates(len(sizes)), max_size=3)),
                at=draw(st.none() | FLOATS),
            )
        )
    texts = st.dictionaries(st.text(), st.text(), max_size=3)
    return Profile(
        suite=draw(st.text()),
        model=draw(NAMES),
        modality="vision",
        sequences=sum(sizes),
        units=draw(st.integers(1, sum(sizes))),
        block_sequences=tuple(sizes),
        layers=tuple(layers),
        provenance=Provenance(
            source=draw(st.text()),
            architecture=draw(texts),
            protocol=draw(st.dictionaries(st.text(), SETTINGS, max_size=4)),
            data=draw(NAMES),
            weights=draw(NAMES),
            commit=draw(st.none() | st.text()),
            device="cpu",
            versions=draw(texts),
            created="2026-11-30T09:00:00+00:00",
        ),
        properties=tuple(
            BlockProperty(
                name,
                draw(st.sampled_from(["holds", "violated", "not applicable"])),
                draw(st.text()),
                draw(st.text()),
            )
            for name in draw(st.lists(NAMES, max_size=3, unique=True))
        ),
    )


@given(profiles())
def test_every_profile_comes_back_as_it_was(made: Profile) -> None:
    content = dump_profile(made, "x")
    back = load_profile(content)
    assert back == made
    # 1, 1.0 and True are equal in Python; that they stay apart shows in the text.
    assert dump_profile(back, "x") == content


def test_a_profile_without_places_and_properties_says_nothing_of_them() -> None:
    """So that files written before either existed are what would be written today."""
    assert b'"at"' not in dump_profile(profile(), "x")
    assert b'"properties"' not in dump_profile(profile(), "x")


@pytest.mark.parametrize("place", [math.nan, math.inf])
def test_a_place_that_is_not_finite_is_never_written(place: float) -> None:
    made = profile(layers=(layer("0", 0.1, at=place),))
    with pytest.raises(BaselineError, match=r"where layer 0 stands of model 'vit' is (nan|inf)"):
        dump_profile(made, "x")


def test_layout_has_sorted_keys_one_to_a_line_and_one_layer_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_profile(profile(), path)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert path.read_bytes().endswith(b"}\n")
    keys = [line.split('"')[1] for line in lines[1:-1] if not line.startswith(("{", "]"))]
    assert keys == sorted(keys)
    assert "digest" in keys
    assert [json.loads(line.rstrip(","))["name"] for line in lines if line.startswith('{"')] == [
        "0",
        "1",
        "final",
    ]


def test_a_profile_is_written_the_same_whatever_the_order_of_its_mappings() -> None:
    made = profile()
    turned = replace(
        made,
        layers=tuple(
            replace(one, estimates=dict(sorted(one.estimates.items(), reverse=True)))
            for one in made.layers
        ),
    )
    assert dump_profile(turned, "x") == dump_profile(made, "x")


@pytest.mark.parametrize(
    ("estimate", "found"),
    [
        (Estimate(math.nan, 0.1, (0.1, 0.2)), "anisotropy at layer 1 (encoder.1)"),
        (Estimate(math.inf, 0.1, (0.1, 0.2)), "anisotropy at layer 1 (encoder.1)"),
        (Estimate(0.1, math.nan, (0.1, 0.2)), "the standard error of anisotropy at layer 1"),
        (Estimate(0.1, 0.1, (0.1, -math.inf)), "block 1 of anisotropy at layer 1"),
    ],
)
def test_what_is_not_finite_is_never_written(
    estimate: Estimate, found: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    write_profile(profile(), path)
    before = path.read_bytes()
    bad = layer("1", 0.1, estimates={"anisotropy": estimate})
    with pytest.raises(BaselineError, match="never recorded") as error:
        write_profile(profile(layers=(layer("0", 0.1), bad)), path)
    assert found in str(error.value)
    assert str(path) in str(error.value)
    assert path.read_bytes() == before


def test_a_profile_that_contradicts_itself_is_never_written(tmp_path: Path) -> None:
    for bad in (
        profile(sequences=6),
        profile(layers=()),
        profile(layers=(layer("0", 0.1), layer("0", 0.2))),
        profile(model="\ud800"),
        conditions(profile(), protocol={"seed": math.nan}),
        conditions(profile(), protocol={"seed": object()}),
    ):
        with pytest.raises(BaselineError, match="not written"):
            write_profile(bad, tmp_path / "a.json")
        assert list(tmp_path.iterdir()) == []


def at(*keys: str | int, to: object) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = to

    return change


def without(*keys: str | int) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        del document[keys[-1]]

    return change


PROPERTY = {"name": "causal", "result": "holds", "text": "25 examples", "reproduce": ""}

EDITS: dict[str, tuple[Callable[[Any], object], str]] = {
    "a string for a number": (at("layers", 1, "width", to="8"), "layers.1.width"),
    "a number for a boolean": (
        at("layers", 0, "estimates", "anisotropy", "vacuous", to=0),
        "layers.0.estimates.anisotropy.vacuous",
    ),
    "a boolean for a number": (
        at("layers", 0, "estimates", "anisotropy", "value", to=True),
        "layers.0.estimates.anisotropy.value",
    ),
    "a fraction for a count": (at("sequences", to=5.5), "sequences"),
    "a missing key": (without("layers", 0, "estimates", "anisotropy", "se"), "Field required"),
    "missing provenance": (without("provenance"), "provenance: Field required"),
    "an unknown key": (at("layers", 0, "note", to="hm"), "layers.0.note"),
    "an unknown top key": (at("limit", to=1), "limit"),
    "no layers": (at("layers", to=[]), "layers"),
    "layers as an object": (at("layers", to={}), "layers"),
    "a negative standard error": (
        at("layers", 0, "estimates", "anisotropy", "se", to=-1.0),
        "estimates.anisotropy.se",
    ),
    "a layer twice": (at("layers", 1, "name", to="0"), "two layers are called '0'"),
    "a block too few": (
        at("layers", 0, "estimates", "anisotropy", "blocks", to=[0.1]),
        "anisotropy has 1 blocks, block_sequences has 2",
    ),
    "other block sizes": (at("block_sequences", to=[3, 3]), "block_sequences add up to 6"),
    "more units than sequences": (at("units", to=6), "units is 6"),
    "a layer's blocks": (
        at("layers", 2, "block_representations", to=[20]),
        "block_representations has 1 blocks",
    ),
    "a layer's count": (at("layers", 2, "representations", to=21), "add up to 20"),
    "zero-length count": (at("layers", 2, "zero_length", to=21), "zero_length is 21"),
    "no value and no reason": (
        at("layers", 0, "estimates", "anisotropy", "value", to=None),
        "must have either a value or the reason",
    ),
    "a value and a reason": (
        at("layers", 0, "estimates", "drift_share", "value", to=1.0),
        "must have either a value or the reason",
    ),
    "a place in words": (at("layers", 0, "at", to="16"), "layers.0.at"),
    "a property twice": (
        at("properties", to=[PROPERTY, PROPERTY]),
        "two properties are called 'causal'",
    ),
    "a result of another kind": (
        at("properties", to=[{**PROPERTY, "result": "passed"}]),
        "properties.0.result",
    ),
    "a foreign kind": (at("format", to="something else"), '"format": "isotest-profile"'),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_well_signed_file_that_makes_no_sense_is_refused(name: str, tmp_path: Path) -> None:
    change, found = EDITS[name]
    path = tmp_path / "a.json"
    write_profile(profile(), path)
    edit(path, change)
    with pytest.raises(BaselineError) as error:
        read_profile(path)
    assert found in str(error.value)
    assert str(error.value).startswith(f"{path}: ")
    assert RECORD_AGAIN in str(error.value)


def test_the_digest_is_what_the_documentation_says_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_profile(profile(), path)
    edit(path, lambda document: None)
    assert read_profile(path) == profile()


@pytest.mark.parametrize(
    "change",
    [
        at("layers", 1, "estimates", "anisotropy", "value", to=0.9),
        at("layers", 1, "estimates", "anisotropy", "blocks", to=[]),
        at("provenance", "data", to="0"),
        at("model", to="vit2"),
        at("digest", to="sha256:0"),
    ],
)
def test_an_edit_by_hand_is_noticed(change: Callable[[Any], object], tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_profile(profile(), path)
    edit(path, change, sign=False)
    with pytest.raises(BaselineError, match="edited or damaged after isotest wrote it"):
        read_profile(path)


def test_line_ends_and_indentation_may_change(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_profile(profile(), path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_profile(path) == profile()
    path.write_text(json.dumps(json.loads(path.read_text()), indent=8))
    assert read_profile(path) == profile()


def test_a_newer_format_names_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_profile(profile(), path)

    def newer(document: Any) -> None:
        document["format_version"] = FORMAT_VERSION + 1
        document["provenance"]["versions"]["isotest"] = "3.4"
        document["something"] = "new"

    edit(path, newer)
    with pytest.raises(BaselineError) as error:
        read_profile(path)
    assert (
        f"written by isotest 3.4 in format {FORMAT_VERSION + 1}; this isotest reads format "
        f"{FORMAT_VERSION}; upgrade isotest, or " in str(error.value)
    )


@pytest.mark.parametrize("version", [None, "1", [1], 0, 1e300, {"a": {}}])
def test_any_other_version_is_refused(version: object, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_profile(profile(), path)
    edit(path, at("format_version", to=version))
    edit(path, at("provenance", "versions", to=[]))
    with pytest.raises(BaselineError, match="an unknown isotest"):
        read_profile(path)


WHOLE = dump_profile(profile(), "x")

BAD_CONTENT: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "binary": (b"\x80\x02}q\x00.", "UTF-8"),
    "a list": (b"[1]", "expected a JSON object"),
    "a word": (b"profile", "not JSON"),
    "NaN": (WHOLE.replace(b'"value": 0.05', b'"value": NaN'), "NaN"),
    "Infinity": (WHOLE.replace(b'"value": 0.05', b'"value": -Infinity'), "-Infinity"),
    "1e999": (WHOLE.replace(b'"value": 0.05', b'"value": 1e999'), "1e999"),
    "a key twice": (
        WHOLE.replace(b'"units": 4', b'"units": 4, "units": 5'),
        "'units' stands twice",
    ),
    "a conflict": (b"<<<<<<< HEAD\n" + WHOLE, "merge conflict"),
    "a second document": (WHOLE + WHOLE, "not JSON"),
    "a nest of lists": (b"[" * 200_000, "nested too deeply"),
    "a closed nest of lists": (b"[" * 200_000 + b"]" * 200_000, "nested too deeply"),
    "a nest of objects": (b'{"a":' * 200_000, "nested too deeply"),
    "a nest in its place": (
        WHOLE.replace(b'"units": 4', b'"units": ' + b"[" * 500 + b"]" * 500),
        "at units",
    ),
    "a number of many digits": (WHOLE.replace(b'"units": 4', b'"units": ' + b"9" * 9999), "digits"),
    "a lone surrogate": (WHOLE.replace(b'"vit"', b'"\\ud800"'), "at model"),
    "a zero byte": (WHOLE + b"\0", "not JSON"),
}


@pytest.mark.parametrize("name", BAD_CONTENT)
def test_anything_else_is_one_clear_message(name: str, tmp_path: Path) -> None:
    content, found = BAD_CONTENT[name]
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(BaselineError) as error:
        read_profile(path)
    assert found in str(error.value)
    assert RECORD_AGAIN in str(error.value)
    assert len(str(error.value)) < 1000


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for length in range(0, len(WHOLE) - 1, 7):
        path.write_bytes(WHOLE[:length])
        with pytest.raises(BaselineError):
            read_profile(path)


@given(st.integers(0, len(WHOLE) - 2), st.integers(0, 255))
def test_a_file_with_one_byte_changed_is_refused_or_the_same(position: int, byte: int) -> None:
    changed = WHOLE[:position] + bytes([byte]) + WHOLE[position + 1 :]
    try:
        assert load_profile(changed) == profile()
    except ValueError:
        assert changed != WHOLE


def test_what_is_no_ordinary_file_is_refused_without_waiting(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="found a folder"):
        read_profile(tmp_path)
    with pytest.raises(BaselineError, match="cannot be read: No such file"):
        read_profile(tmp_path / "absent.json")
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises(BaselineError, match="a folder or a device"):
        read_profile(pipe)


def test_a_huge_file_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(BaselineError, match="expected at most 64 MB"):
        read_profile(path)
