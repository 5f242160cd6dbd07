"""A small project on disk: images, suites, models as Python code, and ways to run pytest on it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

VIT = """
[[models]]
name = "vit"
source = "init:vit?seed=0"
config = { hidden_size = 16, num_hidden_layers = 2, num_attention_heads = 2, \
intermediate_size = 32, image_size = 32, patch_size = 8 }
"""

RESNET = """
[[models]]
name = "resnet"
source = "init:resnet?seed=0"
config = { embedding_size = 8, hidden_sizes = [8, 8], depths = [1, 1] }
preprocess = { size = 32 }
"""

GATED = """
[checks.anisotropy]
max = 0.999
baseline = { margin = 0.02 }
"""

# Plugins of others that cost time, or leave files behind.
QUICK = tuple(
    f"-pno:{plugin}" for plugin in ("hypothesispytest", "xdoctest", "anyio", "cacheprovider")
)

FOLDER = 'source = "folder:../images"'

# torch alone, so that a run in a process of its own costs one import.
NETS = '''
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return x + self.linear(x)


class Net(nn.Module):
    """Patches of 8 x 8, three blocks, a norm."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.stem = nn.Conv2d(3, 8, 8, 8)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.norm = nn.LayerNorm(8)

    def forward(self, image):
        x = self.stem(image).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


def net():
    return Net()
'''


def net(name: str = "net", source: str = "python:nets:net", more: str = "") -> str:
    """The entry of a model in ``nets.py``."""
    return f"""
[[models]]
name = "{name}"
source = "{source}"
preprocess = {{ size = 32 }}
{more}
"""


def hub(name: str = "absent", more: str = "") -> str:
    """An entry that nobody has in a cache."""
    return f"""
[[models]]
name = "{name}"
source = "hub:isotest-tests/{name}"
{more}
"""


def suite(*models: str, checks: str = GATED, data: str = FOLDER) -> str:
    """The text of a suite."""
    return f'modality = "vision"\n[data]\n{data}\n{checks}\n{"".join(models)}'


def write_images(folder: Path, count: int = 12, seed: int = 0) -> None:
    """Blurred noise, no two images alike."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    for index in range(count):
        coarse = generator.integers(0, 256, (5, 5, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((32, 32)).save(folder / f"{index:02}.png")


class Project:
    """What the tests of this folder start from.

    Attributes:
        path: the project's folder, pytest's rootdir.
        cache: where measurements are kept.
    """

    def __init__(self, pytester: pytest.Pytester, cache: Path) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.cache = cache
        write_images(self.path / "images")
        self.write("nets.py", NETS)
        self.ini()

    def write(self, name: str, text: str) -> Path:
        """Write a file below the project's folder."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def ini(self, *lines: str) -> None:
        """Write ``pytest.ini``."""
        self.write("pytest.ini", "\n".join(["[pytest]", "pythonpath = .", *lines, ""]))

    def suite(
        self,
        *models: str,
        name: str = "tiny",
        checks: str = GATED,
        data: str = FOLDER,
    ) -> Path:
        """Write ``suites/NAME.toml``."""
        return self.write(
            f"suites/{name}.toml", suite(*models or (net(),), checks=checks, data=data)
        )

    def baseline(self, model: str = "net", of: str = "tiny") -> Path:
        """Where the baseline of an entry is or would be."""
        return self.path / "baselines" / of / f"{model}.json"

    def baselines(self) -> dict[str, bytes]:
        """Every file below the folder of the baselines."""
        root = self.path / "baselines"
        files = (path for path in root.rglob("*") if path.is_file())
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}

    def plain(self, *arguments: str) -> pytest.RunResult:
        """Run pytest inside this process."""
        return self.pytester.runpytest_inprocess(*QUICK, *arguments)

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run ``pytest --isotest`` inside this process."""
        return self.plain("--isotest", *arguments)

    def apart(self, *arguments: str) -> pytest.RunResult:
        """Run ``pytest --isotest`` in a process of its own."""
        return self.pytester.run(*self.command("--isotest", *arguments), timeout=120)

    def distributed(self, *arguments: str) -> pytest.RunResult:
        """Run ``pytest --isotest`` on two workers of pytest-xdist."""
        return self.apart("-n", "2", *arguments)

    def command(self, *arguments: str) -> list[str]:
        """The command line of a run in a process of its own."""
        return [sys.executable, "-m", "pytest", *QUICK, *arguments]

    def record(self, *arguments: str) -> pytest.RunResult:
        """Record every missing baseline, which must succeed."""
        result = self.run("--isotest-update=missing", *arguments)
        assert result.ret == 0, result.stdout.str()
        return result
