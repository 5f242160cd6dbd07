"""Models and images that misbehave: who, where, what; one message a check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.project import GATED, net

if TYPE_CHECKING:
    from tests.plugin.project import Project

# Each is the tiny model with one thing wrong in it.
MODELS = """
from nets import *


def with_block_2(change):
    model = Net()
    model.blocks[1].register_forward_hook(lambda module, inputs, output: change(output))
    return model


def nan():
    def one(x):
        x = x.clone()
        x[0, 3, 2] = float("nan")
        return x
    return with_block_2(one)


def inf():
    return with_block_2(lambda x: x * 1e38 * 1e38)


def zeros():
    return with_block_2(torch.zeros_like)


def constant():
    return with_block_2(torch.ones_like)


def raises():
    raise RuntimeError("out of luck")


def a_list():
    return [1, 2]


def no_layers():
    return nn.Sequential(nn.Conv2d(3, 8, 8, 8), nn.Flatten())


class Broken(Net):
    def forward(self, image):
        raise ValueError("shapes disagree")


def broken():
    return Broken()


class LatelyBroken(Net):
    def forward(self, image):
        if image.abs().sum() > 0 and image.shape[0] > 1:
            raise ValueError("only in earnest")
        return super().forward(image)


def lately_broken():
    return LatelyBroken()
"""


@pytest.fixture
def faulty(project: Project) -> Project:
    """A project with ``faulty.py`` in it."""
    project.write("faulty.py", MODELS)
    return project


@pytest.mark.parametrize("mode", [(), ("--isotest-update=all",)])
@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("nan", "*model 'm'*layer 2 (blocks.1)*found 1 NaN among*"),
        ("inf", "*model 'm'*layer 2 (blocks.1)*found 1024 Inf among*"),
        ("zeros", "*::m::finite: every representation has zero length at layer 2*"),
        ("constant", "*::m::anisotropy: *layer 2*"),
        ("raises", "source 'python:faulty:raises': *raised RuntimeError: out of luck*"),
        ("a_list", "source 'python:faulty:a_list': expected *torch.nn.Module*found list"),
        ("no_layers", "source 'python:faulty:no_layers': *layers = *"),
        ("broken", "source 'python:faulty:broken': *ValueError: shapes disagree*"),
        ("lately_broken", "*model 'm'*ValueError: only in earnest*"),
        ("missing", "source 'python:faulty:missing': faulty has no 'missing'*"),
    ],
)
def test_a_model_that_misbehaves_is_named_and_never_recorded(
    faulty: Project, model: str, message: str, mode: tuple[str, ...]
) -> None:
    faulty.suite(net("m", f"python:faulty:{model}"))
    result = faulty.run(*mode)
    assert result.ret == 1
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("E  *")
    assert faulty.baselines() == {}


def test_a_module_that_is_not_there(project: Project) -> None:
    project.suite(net("m", "python:nowhere:net"))
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["source 'python:nowhere:net': no module named 'nowhere'; *"])


def test_one_entry_s_fault_leaves_the_others_alone(faulty: Project) -> None:
    faulty.suite(net(), checks=GATED)
    faulty.record()
    faulty.suite(net("m", "python:faulty:raises"), net())
    result = faulty.run()
    result.assert_outcomes(failed=2, passed=5)
    assert faulty.run("--isotest-update=missing").ret == 1


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n rest", b"text"])
def test_a_corrupt_image_is_named(project: Project, content: bytes) -> None:
    (project.path / "images" / "07.png").write_bytes(content)
    project.suite()
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["image */images/07.png: *replace or remove it*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_folder_without_images(project: Project) -> None:
    project.write("empty/readme.txt", "none here")
    project.suite(data='source = "folder:../empty"')
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["data source folder:*/empty: expected images*found 1 × .txt"])


def test_a_folder_that_is_not_there(project: Project) -> None:
    project.suite(net("a"), net("b", more="optional = true"), data='source = "folder:../none"')
    result = project.run()
    assert result.ret == 1
    result.assert_outcomes(failed=3, skipped=2, passed=1)
    result.stdout.fnmatch_lines(["the folder */none does not exist; create it or *"])
