"""The recipe for training, run from its own page: green with skips, red without them.

The files are those of ``docs/recipes/training.md``. The planted fault is the one that a refactoring
makes: the two residual additions of a block are gone, and shapes and names stay.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPS = {
    "x = x + self.attention(": "x = self.attention(",
    "return x + self.mlp(": "return self.mlp(",
}


def write_recipe(folder: Path) -> None:
    """The files of the page: fenced blocks whose first line is a comment with a file's name."""
    page = (ROOT / "docs" / "recipes" / "training.md").read_text(encoding="utf-8")
    for fenced in re.findall(r"^ *```\w+\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL):
        text = textwrap.dedent(fenced)
        if named := re.match(r"# ([\w/.-]+\.\w+)\n", text):
            path = folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "160", "OMP_NUM_THREADS": "1"}
    environment.pop("CI", None)  # recording is refused there
    environment["ISOTEST_CACHE_DIR"] = str(folder / "cache")
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=580,
        check=False,
    )


def gate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(
        folder,
        "-m",
        "pytest",
        "-pno:cacheprovider",
        "--isotest",
        "suites/training.toml",
        *arguments,
    )


def train(folder: Path, seed: int) -> float:
    """The last held-out loss that the script prints."""
    done = run(folder, "train.py", "--seed", str(seed))
    assert done.returncode == 0, done.stdout + done.stderr
    print(folder.name, done.stdout, sep="\n")
    losses = re.findall(r"held-out loss ([\d.]+)", done.stdout)
    assert len(losses) == 3
    return float(losses[-1])


def entropy_of_bytes(folder: Path) -> float:
    """Nats of a byte of the held-out texts, when only how often each occurs is known."""
    lines = (folder / "texts" / "held-out.jsonl").read_text(encoding="utf-8").splitlines()
    counts = Counter("".join(json.loads(line)["text"] for line in lines).encode())
    total = counts.total()
    return -sum(count / total * math.log(count / total) for count in counts.values())


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipe's own project, with the accepted checkpoint's baseline."""
    folder = tmp_path_factory.mktemp("projects") / "with-skips"
    write_recipe(folder)
    train(folder, 0)
    checkpoints = folder / "checkpoints"
    shutil.copy(
        checkpoints / "seed-0" / "step-50.safetensors", checkpoints / "accepted.safetensors"
    )
    recorded = gate(folder, "--isotest-update=missing")
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    assert (folder / "baselines" / "training" / "deep.json").is_file()
    return folder


def test_with_skips_green_and_without_red_on_the_same_suite(project: Path) -> None:
    without = project.parent / "without-skips"
    shutil.copytree(project, without)
    code = (without / "deep.py").read_text(encoding="utf-8")
    for whole, broken in SKIPS.items():
        assert code.count(whole) == 1
        code = code.replace(whole, broken)
    (without / "deep.py").write_text(code, encoding="utf-8")
    stand_in = "--isotest-model=deep=path:checkpoints/seed-1/step-50.safetensors"

    # The same seed, data and steps; what has skips knows more than how often each byte occurs.
    loss, loss_without = train(project, 1), train(without, 1)
    assert loss < entropy_of_bytes(project)
    assert loss < loss_without

    green = gate(project, stand_in)
    assert green.returncode == 0, green.stdout + green.stderr
    red = gate(without, stand_in)
    assert red.returncode == 1, red.stdout + red.stderr
    # Layer, value and limit; what it is compared with; and why.
    assert re.search(
        r"deep::rank_residual: is 0\.\d+ at layer \d+, below min = 0\.2$", red.stdout, re.MULTILINE
    )
    assert re.search(
        r"deep::anisotropy: is \d\.\d+ at layer \d+, above max = 0\.98$", red.stdout, re.MULTILINE
    )
    assert re.search(r"deep::accepted-rank: rank_residual fell at layer 1: ", red.stdout)
    assert re.search(
        r"cause +the positions of a sequence have \d+% of their energy in common: ", red.stdout
    )
    assert "Traceback" not in red.stdout


def test_untrained_models_of_other_seeds_are_green_and_red_without_skips(
    project: Path, tmp_path: Path
) -> None:
    """Step 0 has the limit already: a gate before the first step costs no training."""
    code = (
        "import torch, isotest, sys\n"
        "from deep import Decoder\n"
        "text = open('texts/held-out.jsonl').read()\n"
        "texts = [text[at : at + 1000] for at in range(0, 8000, 1000)]\n"
        "for seed in range(2):\n"
        "    torch.manual_seed(seed)\n"
        "    profile = isotest.measure(Decoder(), texts, modality='text', tokenizer='bytes',\n"
        "                              length=64)\n"
        "    print('lowest', min(profile.curve('rank_residual')))\n"
    )
    plain = (project / "deep.py").read_text(encoding="utf-8")
    lowest = {}
    for name in ("whole", "broken"):
        folder = tmp_path / name
        (folder / "texts").mkdir(parents=True)
        shutil.copy(project / "texts" / "held-out.jsonl", folder / "texts")
        text = plain
        for whole, broken in SKIPS.items() if name == "broken" else ():
            text = text.replace(whole, broken)
        (folder / "deep.py").write_text(text, encoding="utf-8")
        done = run(folder, "-c", code)
        assert done.returncode == 0, done.stderr
        lowest[name] = [float(found) for found in re.findall(r"lowest (\S+)", done.stdout)]
        assert len(lowest[name]) == 2
    assert min(lowest["whole"]) > 0.2 > 0.05 > max(lowest["broken"])
