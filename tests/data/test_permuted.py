"""The planted fault "permuted data": other data of the same values."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from PIL import Image

from isotest.data import Dataset, Waveform
from isotest.data.load import as_data
from isotest.faults import FAULTS
from tests.data.recordings import RATE, ramp

if TYPE_CHECKING:
    from isotest.models.loaded import LoadedModel

TEXT = "In the beginning God created the heaven and the earth. \x00é"
PIXELS = np.arange(300, dtype=np.uint16).astype(np.uint8).reshape(10, 10, 3)
CONTENTS: list[tuple[str, Any]] = [
    ("vision", Image.fromarray(PIXELS)),
    ("text", TEXT),
    ("characters", TEXT),
    ("speech", Waveform(ramp(3), RATE, "said")),
]


def values(content: Any) -> list[Any]:
    """What is permuted: pixels, characters or samples."""
    if isinstance(content, str):
        return list(content)
    if isinstance(content, Waveform):
        return list(content.samples)
    return [tuple(pixel) for pixel in np.asarray(content).reshape(-1, 3).tolist()]


def permuted(data: Dataset, strength: float = 1.0) -> Dataset:
    (fault,) = [fault for fault in FAULTS if fault.name == "permuted data"]
    with fault.plant(cast("LoadedModel", None), data, strength) as (_, altered):
        return altered


@pytest.mark.parametrize(("modality", "content"), CONTENTS)
def test_the_same_values_in_another_order(modality: str, content: Any) -> None:
    data = as_data([(content, "a"), (content, "a")], modality=modality)
    altered = permuted(data)
    before, after = list(data), list(altered)
    for old, new in zip(before, after, strict=True):
        assert values(new.content) != values(old.content)
        assert sorted(values(new.content)) == sorted(values(old.content))
        assert (new.index, new.unit, new.origin) == (old.index, old.unit, old.origin)
        assert new.digest != old.digest
    assert [sample.digest for sample in altered] == [sample.digest for sample in after]
    assert values(after[0].content) == values(after[1].content)
    assert isinstance(altered, Dataset)
    assert (len(altered), altered.grouped, altered.describe()) == (2, True, data.describe())


def test_a_waveform_keeps_its_rate_and_transcript() -> None:
    (sample,) = permuted(as_data([Waveform(ramp(3), RATE, "said")], modality="speech"))
    assert (sample.content.rate, sample.content.transcript) == (RATE, "said")
    assert sample.content.samples.dtype == np.float32


def moved(strength: float) -> set[int]:
    """Which characters are not where they were, of 64 different ones."""
    text = "".join(map(chr, range(64)))
    (sample,) = permuted(as_data([text], modality="text"), strength)
    return {
        place
        for place, (old, new) in enumerate(zip(text, sample.content, strict=True))
        if old != new
    }


def test_the_strength_is_the_share_that_changes_places() -> None:
    shares = (1.0, 0.5, 0.25, 0.125)
    assert [len(moved(share)) for share in shares] == [64, 32, 16, 8]
    for more, less in pairwise(shares):
        assert moved(less) < moved(more)
    assert len(moved(1 / 128)) == 2  # one alone has no place to go


@pytest.mark.parametrize(
    ("modality", "content"),
    [
        ("vision", Image.new("RGB", (4, 4), "white")),
        ("text", "aaaa"),
        ("text", "a"),
    ],
)
def test_what_has_no_other_order_is_the_same_data(modality: str, content: Any) -> None:
    data = as_data([content], modality=modality)
    assert [sample.digest for sample in permuted(data)] == [sample.digest for sample in data]
