"""What may differ between the run that recorded and the run that gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.project import RESNET, VIT, net

if TYPE_CHECKING:
    from tests.plugin.project import Project

# No margin of the suite's own: what is left is the floor, far below any real change.
ONE_AN_INPUT = """
[checks.anisotropy]
baseline = { worse = "both" }
[checks.mean_norm]
baseline = { worse = "both" }
"""
MANY_AN_INPUT = f"""{ONE_AN_INPUT}
[checks.intra_similarity]
baseline = {{ worse = "both" }}
[checks.rank_residual]
baseline = {{ worse = "both" }}
"""

IMAGES = """
from pathlib import Path

from PIL import Image


class Images:
    def __init__(self, backwards=False):
        self.paths = sorted(Path("images").glob("*.png"), reverse=backwards)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return Image.open(self.paths[index]).convert("RGB")


def images():
    return Images()
"""


@pytest.mark.parametrize(
    ("model", "checks"), [(VIT, MANY_AN_INPUT), (RESNET, ONE_AN_INPUT)], ids=["tokens", "maps"]
)
def test_the_batch_size_changes_nothing(project: Project, model: str, checks: str) -> None:
    project.suite(model, checks=checks)
    project.record("--isotest-batch-size", "8")
    for size in ("1", "3", "5", "12", "100"):
        # The size is no part of the cache's key.
        for entry in project.cache.rglob("*.json"):
            entry.unlink()
        result = project.run("--isotest-batch-size", size)
        assert result.ret == 0
        result.stdout.fnmatch_lines(["*1 measured in*"])


def test_a_batch_size_in_the_suite_is_no_part_of_the_protocol(project: Project) -> None:
    project.suite(net(more="measure = { batch_size = 3 }"), checks=MANY_AN_INPUT)
    project.record()
    project.suite(checks=MANY_AN_INPUT)
    assert project.run().ret == 0


def test_another_number_of_threads_changes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.suite(checks=MANY_AN_INPUT)
    project.record()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    project.write(
        "conftest.py",
        "import sys\n"
        "def pytest_sessionfinish(session):\n"
        "    print('threads:', sys.modules['torch'].get_num_threads())\n",
    )
    result = project.apart("-s")
    assert result.ret == 0
    assert "threads: 2" in str(result.stdout)


def test_the_way_the_same_images_arrive_changes_nothing(project: Project) -> None:
    project.write("pictures.py", IMAGES)
    project.suite(checks=MANY_AN_INPUT, data='source = "python:pictures:images"')
    project.record()
    for size in ("1", "3", "8"):
        assert project.run("--isotest-batch-size", size).ret == 0
    one_by_one = "return (Images()[index] for index in range(12))"
    project.write("pictures.py", IMAGES.replace("return Images()", one_by_one))
    assert project.run().ret == 0


def test_images_in_another_order_are_other_data(project: Project) -> None:
    """Blocks are cut by index, and a comparison is paired by block: the order is part of it."""
    project.write("pictures.py", IMAGES)
    project.suite(checks=MANY_AN_INPUT, data='source = "python:pictures:images"')
    project.record()
    project.write("pictures.py", IMAGES.replace("Images()", "Images(backwards=True)"))
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*not comparable: data: the baseline saw 12 samples*"])
