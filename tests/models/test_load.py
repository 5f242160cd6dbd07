"""Devices, precisions, and what importing costs."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from isotest.errors import MissingError, SourceError
from isotest.models import load_model
from isotest.models.registry import BUILDERS
from isotest.source import MODEL_SCHEMES
from tests.models.tiny import VIT


def test_every_scheme_has_a_builder() -> None:
    assert set(BUILDERS) == set(MODEL_SCHEMES)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:7"])
def test_an_absent_device_is_missing(device: str) -> None:
    with pytest.raises(MissingError, match=f"device '{device}' was asked for, torch .* sees none"):
        load_model("init:vit", config=VIT, device=device)


@pytest.mark.parametrize("device", ["gpu", "", "meta"])
def test_an_unusable_device(device: str) -> None:
    with pytest.raises(SourceError):
        load_model("init:vit", config=VIT, device=device)


def test_an_unknown_dtype() -> None:
    with pytest.raises(SourceError, match=r"unknown dtype 'float23'; did you mean 'float32'"):
        load_model("init:vit", config=VIT, dtype="float23")


def test_importing_the_package_loads_no_framework() -> None:
    code = (
        "import sys, isotest.models, isotest.models.registry, isotest.models.loaded;"
        "heavy = {'torch', 'transformers', 'timm', 'torchvision', 'numpy'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_loading_is_silent(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    load_model("init:vit", config=VIT)
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list
