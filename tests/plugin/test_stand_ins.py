"""``--isotest-model``: a checkpoint measured in an entry's place, against the entry's baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.plugin.project import VIT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.project import Project

TINY: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": 32,
    "patch_size": 8,
}


def saved(folder: Path, seed: int = 0, nan: bool = False, **config: Any) -> Path:
    """A ViT of the suite's architecture, as training would save it."""
    import torch
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(seed)
    model = ViTModel(ViTConfig(**{**TINY, **config}))
    if nan:
        model.state_dict()["layernorm.weight"][3] = float("nan")
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def gated(project: Project) -> Project:
    """A tiny ViT, gated on all layers but the embedding."""
    project.suite(VIT, checks="[checks.anisotropy]\nbaseline = { margin = 0.1 }")
    project.record()
    return project


@pytest.mark.parametrize("what", ["", "/model.safetensors"])
def test_another_seed_is_measured_and_within_the_margin(gated: Project, what: str) -> None:
    saved(gated.path / "run 1" / "last", seed=7)
    result = gated.run("-v", "--isotest-model", f"vit=path:run 1/last{what}", "--junitxml=j.xml")
    assert result.ret == 0
    report = (gated.path / "j.xml").read_text()
    assert 'name="change"' in report
    assert 'name="change" value="0.0"' not in report


def test_relative_paths_start_where_pytest_was_called(
    gated: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(gated.path / "runs" / "last")
    monkeypatch.chdir(gated.path / "runs")
    result = gated.run("../suites", "--isotest-model", "vit=path:last")
    assert result.ret == 0


def test_a_collapsed_checkpoint_is_red(gated: Project) -> None:
    """Every patch embedded alike: the common direction that equal labels teach."""
    import torch
    from transformers import ViTModel

    folder = saved(gated.path / "bad")
    model = ViTModel.from_pretrained(folder)
    with torch.no_grad():
        model.state_dict()["embeddings.patch_embeddings.projection.bias"].add_(2.0)
    model.save_pretrained(folder)
    result = gated.run("--isotest-model", "vit=path:bad")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "*::vit::anisotropy: *",
            "  measured     path:bad, in place of vit",
            "*again: pytest --isotest *::vit::anisotropy --isotest-model vit=path:bad",
        ]
    )
    result.stdout.no_fnmatch_line("*--isotest-update*")


def test_with_workers_the_stand_in_is_measured_too(gated: Project) -> None:
    saved(gated.path / "good", seed=7)
    options = ("--isotest-model", "vit=path:good", "--junitxml=j.xml")
    assert gated.run(*options).ret == 0
    alone = (gated.path / "j.xml").read_text().partition('name="change"')[2][:40]
    assert gated.distributed(*options).ret == 0
    assert (gated.path / "j.xml").read_text().partition('name="change"')[2][:40] == alone


@pytest.mark.parametrize(
    "other", [{"num_hidden_layers": 3}, {"intermediate_size": 64}, {"hidden_size": 8}]
)
def test_another_architecture_is_not_comparable(gated: Project, other: dict[str, Any]) -> None:
    saved(gated.path / "other", **other)
    result = gated.run("--isotest-model", "vit=path:other")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*::vit::anisotropy: not comparable: architecture, *"])


def test_a_state_dict_of_another_architecture_does_not_load(gated: Project) -> None:
    saved(gated.path / "other", num_hidden_layers=3)
    result = gated.run("--isotest-model", "vit=path:other/model.safetensors")
    assert result.ret == 1
    assert "source 'path:other/model.safetensors'" in str(result.stdout)
    assert "Traceback" not in str(result.stdout)


def test_nan_in_the_weights_is_red_and_named(gated: Project) -> None:
    saved(gated.path / "bad", nan=True)
    result = gated.run("--isotest-model", "vit=path:bad")
    assert result.ret == 1
    result.assert_outcomes(failed=3, passed=1)
    result.stdout.fnmatch_lines(["model 'vit', layer final*found * NaN among*"])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\xff" * 64])
def test_a_file_that_is_no_checkpoint_is_one_message(gated: Project, content: bytes) -> None:
    (gated.path / "last.safetensors").write_bytes(content)
    result = gated.run("--isotest-model", "vit=path:last.safetensors")
    assert result.ret == 1
    assert "source 'path:last.safetensors'" in str(result.stdout)
    assert "Traceback" not in str(result.stdout)


def test_a_missing_checkpoint_is_red_even_where_skips_are_allowed(gated: Project) -> None:
    """Whoever names a source wants it measured."""
    result = gated.run("--isotest-model", "vit=path:nowhere", "--isotest-allow-skips")
    assert result.ret == 1
    result.assert_outcomes(failed=3, passed=1)
    result.stdout.fnmatch_lines(["source 'path:nowhere': nothing at */nowhere; expected *"])
    result.stdout.no_fnmatch_line("*optional = true*")
