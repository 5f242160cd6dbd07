"""``examples/digits/train.py``: what the script does, and the checkpoint that ships."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import isotest
from isotest.data.digits import load_digits

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = Path(__file__).parents[1] / "examples" / "digits" / "train.py"
SHIPPED = Path(isotest.__file__).parent / "samples" / "models" / "digits"


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("digits_train", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def train(
    script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[float, bytes]]:
    """Trains for one epoch; held-out accuracy in percent, and the weights' file."""

    def _train(name: str, *arguments: str) -> tuple[float, bytes]:
        output = tmp_path / name
        script.main(["--epochs", "1", "--output", str(output), *arguments])
        captured = capsys.readouterr()
        assert re.search(r"^epoch  1 of 1: loss \d", captured.err, re.MULTILINE)
        line = re.fullmatch(r"held-out accuracy (\d+\.\d\d)%; saved in (.*)\n", captured.out)
        assert line
        assert line[2] == str(output)
        return float(line[1]), (output / "model.safetensors").read_bytes()

    return _train


def test_a_seed_decides_the_weights(train: Callable[..., tuple[float, bytes]]) -> None:
    first, again, other = (
        train(name, "--seed", seed)[1] for name, seed in (("a", "0"), ("b", "0"), ("c", "1"))
    )
    assert first == again
    assert first != other
    assert len(first) < 2_000_000


def test_faults_train_something_else(train: Callable[..., tuple[float, bytes]]) -> None:
    _, good = train("good", "--seed", "0")
    accuracy, equal_labels = train("equal", "--seed", "0", "--fault", "equal-labels")
    _, learning_rate = train("rate", "--seed", "0", "--fault", "learning-rate")
    assert len({good, equal_labels, learning_rate}) == 3
    # A model that has only ever seen the label 0 is right on the zeros and nowhere else.
    _, labels = load_digits("held-out")
    assert accuracy == pytest.approx(100 * (labels == 0).mean(), abs=0.005)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "new"], "required: --seed"),
        (["--seed", "0"], "required: --output"),
        (["--seed", "0", "--output", "new", "--epochs", "0"], "--epochs is 0, expected at least 1"),
        (["--seed", "0", "--output", "new", "--fault", "x"], "invalid choice: 'x'"),
        (["--seed", "-1", "--output", "new"], "--seed is -1, expected 0 or more"),
        (["--seed", "0", "--output", "full"], "--output full exists and is not an empty folder"),
        (["--seed", "0", "--output", "file"], "--output file exists and is not an empty folder"),
    ],
)
def test_bad_arguments(
    script: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("full").mkdir()
    Path("full/keep").write_text("x")
    Path("file").write_text("x")
    with pytest.raises(SystemExit) as exit_:
        script.main(arguments)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "keep"]


def test_the_shipped_checkpoint_reads_digits(script: Any) -> None:
    assert sorted(path.name for path in SHIPPED.iterdir()) == ["config.json", "model.safetensors"]
    assert (SHIPPED / "model.safetensors").stat().st_size < 2_000_000
    model = script.ViTForImageClassification.from_pretrained(SHIPPED)
    assert script.held_out_accuracy(model) >= 0.97


def test_isotest_feeds_the_model_what_it_was_trained_on(script: Any) -> None:
    torch = sys.modules["torch"]
    from isotest.data import open_data
    from isotest.models.feeds import FeedRequest, feed_of

    model = script.ViTForImageClassification.from_pretrained(SHIPPED)
    feed: Any = feed_of(FeedRequest(model, "digits", folder=SHIPPED))
    images = [sample.content for sample in open_data("sample:digits?split=held-out")]
    pixels, _ = script.digits("held-out")
    torch.testing.assert_close(feed.preprocess(images)["pixel_values"], pixels, rtol=0, atol=1e-6)
