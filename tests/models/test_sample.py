"""``sample:``: trained models that ship with the package."""

from __future__ import annotations

import pytest

from isotest.errors import SourceError
from isotest.models import load_model, sample
from tests.models.test_path import classifier


@pytest.fixture(autouse=True)
def samples(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.mktemp("samples")
    classifier().save_pretrained(folder / "figures")
    classifier().save_pretrained(folder.parent / "outside")
    monkeypatch.setattr(sample, "SAMPLES", folder)


def test_a_sample_loads() -> None:
    assert load_model("sample:figures").layers[0].prefix == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("sample:figure", "no such sample model; did you mean 'figures'?"),
        ("sample:zz", "no such sample model; known: figures"),
        ("sample:../outside", "no such sample model"),
        ("sample:figures?x=1", "unknown option 'x'"),
    ],
)
def test_bad_input_is_one_clear_message(source: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        load_model(source)
    assert message in str(caught.value)
