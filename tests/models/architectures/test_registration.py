"""The auto classes of transformers know what is written here, and keep what is their own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import torch
from transformers import CONFIG_MAPPING, AutoConfig, AutoModel, BertConfig

from isotest.models import architectures
from isotest.models.architectures import register
from isotest.models.architectures.van import VanConfig

if TYPE_CHECKING:
    import pytest


def test_registering_again_changes_nothing() -> None:
    register("van")
    register("van", "bert", "nonsense", "None")
    assert CONFIG_MAPPING["van"] is VanConfig
    assert "nonsense" not in CONFIG_MAPPING


def test_every_architecture_can_be_registered() -> None:
    register()
    for model_type in architectures.MODEL_TYPES:
        config = AutoConfig.for_model(model_type)
        assert config.model_type == model_type
        with torch.device("meta"):
            assert type(AutoModel.from_config(config).config) is type(config)


def test_a_type_that_transformers_has_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ("isotest.models.architectures.van", {"AutoConfig": "VanConfig"})
    monkeypatch.setattr(architectures, "_ARCHITECTURES", {"bert": ours})
    register("bert")
    assert CONFIG_MAPPING["bert"] is BertConfig


def test_the_names_are_known_without_torch() -> None:
    code = (
        "import sys, isotest.models.architectures, isotest.models.architectures.character_bert\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
