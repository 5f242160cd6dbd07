"""Windows and documents: every unit in order, none twice, none from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotest.data.dataset import Sample
from isotest.data.load import as_data
from isotest.errors import SourceError
from isotest.measurement import measure_loaded
from isotest.models.batches import batches
from isotest.models.text.encoder import TextEncoder, ids
from isotest.models.text.packing import documents, windows
from tests.models.text.families import loaded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isotest.models.loaded import Piece
    from isotest.profile import Profile


def encoder(prefix: int = 1, suffix: int = 1, **options: Any) -> TextEncoder:
    """One unit a character, numbered from 100."""

    def encode(text: str) -> Any:
        return np.array([100 + ord(letter) for letter in text], np.int64)

    return TextEncoder(
        encode,
        1000,
        "letters",
        prefix=ids(*range(1, 1 + prefix)),
        suffix=ids(*range(50, 50 + suffix)),
        **options,
    )


def samples(texts: Sequence[str], units: Sequence[int] | None = None) -> list[Sample]:
    """Texts with their units: each its own unless given."""
    units = range(len(texts)) if units is None else units
    return [
        Sample(index, unit, f"line {index}", text, b"")
        for index, (text, unit) in enumerate(zip(texts, units, strict=True))
    ]


def bodies(made: Sequence[Piece], by: TextEncoder) -> list[str]:
    """The letters of each sequence, once what is around them is seen to be right."""
    found = []
    for piece in made:
        content = piece.content.tolist()
        end = len(content) - len(by.suffix)
        assert content[: len(by.prefix)] == by.prefix.tolist()
        assert content[end:] == by.suffix.tolist()
        found.append("".join(chr(unit - 100) for unit in content[len(by.prefix) : end]))
    return found


texts = st.lists(st.text(st.sampled_from("abcdefgh"), max_size=12), min_size=1, max_size=12)
sides = st.integers(0, 2)


@given(texts, st.integers(5, 16), sides, sides)
def test_windows_of_texts_joined(
    contents: list[str], length: int, prefix: int, suffix: int
) -> None:
    by = encoder(prefix, suffix)
    body = length - by.added
    joined = "".join(contents)
    whole = [joined[start : start + body] for start in range(0, len(joined), body)]
    whole = [window for window in whole if len(window) == body]
    if not whole:
        with pytest.raises(SourceError, match=f"all texts together is {len(joined)} letters long"):
            list(windows(samples(contents), by, length, grouped=False))
        return
    made = list(windows(samples(contents), by, length, grouped=False))
    assert bodies(made, by) == whole
    assert {len(piece.content) for piece in made} == {length}
    assert [piece.unit for piece in made] == list(range(len(whole)))


@given(texts, st.integers(3, 8), st.data())
def test_windows_within_units(contents: list[str], length: int, data: st.DataObject) -> None:
    by = encoder()
    body = length - 2
    units = data.draw(
        st.lists(st.integers(0, 3), min_size=len(contents), max_size=len(contents)), label="units"
    )
    given_samples = samples(contents, units)
    joined = {
        unit: "".join(text for text, u in zip(contents, units, strict=True) if u == unit)
        for unit in dict.fromkeys(units)
    }
    short = [unit for unit, text in joined.items() if len(text) < body]
    if short:
        # The first unit at fault is named by its first text.
        first = units.index(short[0])
        with pytest.raises(SourceError, match=rf"^text line {first}: its group is "):
            list(windows(given_samples, by, length, grouped=True))
        return
    made = list(windows(given_samples, by, length, grouped=True))
    found: dict[int, list[str]] = {}
    for piece, window in zip(made, bodies(made, by), strict=True):
        found.setdefault(piece.unit, []).append(window)
    assert found == {
        unit: [text[k * body : (k + 1) * body] for k in range(len(text) // body)]
        for unit, text in joined.items()
    }


@given(st.lists(st.text(st.sampled_from("abcdefgh"), min_size=1, max_size=12)), sides, sides)
def test_documents_are_cut_at_the_length(contents: list[str], prefix: int, suffix: int) -> None:
    by = encoder(prefix, suffix)
    units = [index // 2 for index in range(len(contents))]
    made = list(documents(samples(contents, units), by, 8))
    assert bodies(made, by) == [text[: 8 - by.added] for text in contents]
    assert [piece.unit for piece in made] == units
    assert [piece.origin for piece in made] == [f"line {k}" for k in range(len(contents))]


def test_a_window_is_made_as_soon_as_there_is_enough_of_it() -> None:
    read: list[int] = []

    def stream() -> Iterator[Sample]:
        for sample in samples(["abc"] * 100):
            read.append(sample.index)
            yield sample

    made = windows(stream(), encoder(0, 0), 5, grouped=False)
    assert next(made).content.tolist() == [197, 198, 199, 197, 198]
    assert read == [0, 1]


def test_windows_of_words_are_of_words() -> None:
    """Units that are made of parts, here two: cut between units, texts without any joined too."""

    def encode(text: str) -> Any:
        return np.array([[ord(word[0]), len(word)] for word in text.split()]).reshape(-1, 2)

    by = TextEncoder(encode, 200, "words", prefix=np.array([[1, 1]]))
    made = list(windows(samples(["ab c", " ", "def g h"]), by, 3, grouped=False))
    assert [piece.content.tolist() for piece in made] == [
        [[1, 1], [97, 2], [99, 1]],
        [[1, 1], [100, 3], [103, 1]],
    ]


@given(st.integers(0, 30), st.integers(1, 9))
def test_batches_keep_the_order_and_lose_nothing(count: int, size: int) -> None:
    made = list(documents(samples(["abc"] * count), encoder(), 5))
    found = list(batches(made, size, lambda _first, _other: True))
    assert [piece for batch in found for piece in batch] == made
    assert all(len(batch) == size for batch in found[:-1])
    assert all(0 < len(batch) <= size for batch in found)


@pytest.mark.parametrize("packing", ["windows", "documents"])
def test_sequences_do_not_depend_on_the_batch_size(packing: str) -> None:
    model = loaded("bert", packing=packing, length=8)

    def profile(beginning: str, size: int) -> Profile:
        contents = [(f"{beginning} {k} and some more words", k // 3) for k in range(9)]
        data = as_data(contents, "text")
        return measure_loaded(model, data, source="", model="m", modality="text", batch_size=size)

    profiles = [profile("a text of", size) for size in (1, 4, 8)]
    assert len({tuple(sorted(p.provenance.protocol.items())) for p in profiles}) == 1
    assert {(p.sequences, p.units) for p in profiles} == {(profiles[0].sequences, 3)}
    # What was read is told apart.
    other = profile("the text of", 8).provenance.protocol
    assert other["preprocess.ids"] != profiles[0].provenance.protocol["preprocess.ids"]


def test_a_document_without_a_unit_is_named() -> None:
    by = TextEncoder(lambda _text: ids(), 10, "tokens")
    with pytest.raises(SourceError, match=r"^text line 0: yields no tokens; remove it or correct"):
        list(documents(samples(["   "]), by, 8))


@pytest.mark.parametrize("grouped", [True, False])
def test_too_little_for_a_window_says_how_much_there_is(grouped: bool) -> None:
    with pytest.raises(SourceError) as caught:
        list(windows(samples(["abc", "de"], [0, 0]), encoder(), 8, grouped=grouped))
    what = "its group" if grouped else "all texts together"
    assert str(caught.value) == (
        f"text line 0: {what} is 5 letters long, shorter than a window of 8 (2 of them added); "
        "lower 'length' in [measure], or use packing = 'documents'"
    )


def test_a_window_that_fits_exactly_is_kept() -> None:
    made = list(windows(samples(["abc", "def"]), encoder(), 8, grouped=False))
    assert bodies(made, encoder()) == ["abcdef"]


@pytest.mark.parametrize("packing", ["windows", "documents"])
def test_a_text_that_the_tokenizer_fails_on_is_named(packing: str) -> None:
    def encode(text: str) -> Any:
        raise ValueError(f"cannot spell {text}")

    by = TextEncoder(encode, 10)
    made = (
        documents(samples(["abc"]), by, 8)
        if packing == "documents"
        else windows(samples(["abc"]), by, 8, grouped=False)
    )
    with pytest.raises(SourceError) as caught:
        list(made)
    assert str(caught.value) == (
        "text line 0: the tokenizer fails on it: ValueError: cannot spell abc"
    )
