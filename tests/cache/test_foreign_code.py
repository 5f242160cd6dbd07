"""Weights read by a class of the user's own are measured each time: files are not all they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from transformers import AutoConfig, AutoModel, ViTConfig, ViTModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_MAPPING

from isotest.cache import ProfileCache
from isotest.entry import Settings, measure_entry
from isotest.models.foreign_code import foreign_class
from isotest.suite import load_suite
from tests.plugin.project import write_images

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import torch

SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": 32,
    "patch_size": 8,
}

SUITE = """modality = "vision"
[data]
source = "folder:images"
[[models]]
name = "team"
source = "path:weights"
preprocess = { size = 32 }
[checks.rank_residual]
min = 0
"""


class TeamConfig(ViTConfig):
    model_type = "isotest-team"


class TeamModel(ViTModel):
    """What a team has: a class of transformers, changed by code that stands in its repository."""

    config_class = TeamConfig
    factor = 1.0

    def forward(self, pixel_values: torch.Tensor, **settings: object) -> object:
        return super().forward(pixel_values * self.factor, **settings)


@pytest.fixture
def registered() -> Iterator[None]:
    AutoConfig.register("isotest-team", TeamConfig)
    AutoModel.register(TeamConfig, TeamModel)
    yield
    CONFIG_MAPPING._extra_content.pop("isotest-team")
    MODEL_MAPPING._extra_content.pop(TeamConfig)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("own", [True, False])
def test_a_change_of_the_teams_code_is_never_hidden_by_the_cache(
    own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = TeamModel(TeamConfig(**SIZES)) if own else ViTModel(ViTConfig(**SIZES))
    model.save_pretrained(tmp_path / "weights")
    write_images(tmp_path / "images")
    (tmp_path / "team.toml").write_text(SUITE)
    suite = load_suite(tmp_path / "team.toml")
    cache = ProfileCache(tmp_path / "cache")
    before = measure_entry(suite, suite.models[0], Settings(), cache=cache)
    monkeypatch.setattr(TeamModel, "factor", 0.0)  # the same files, read by other code
    after = measure_entry(suite, suite.models[0], Settings(), cache=cache)
    assert not before.cached
    assert after.cached is not own
    same = before.profile.curve("rank_residual") == after.profile.curve("rank_residual")
    assert same is not own
    assert (after.file is None) is own
    assert (foreign_class(model) is None) is not own
