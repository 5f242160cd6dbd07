"""Runs that end in the middle, and two at once: what was recorded before survives, whole."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from isotest.profile_json import read_profile
from tests.plugin.project import net

if TYPE_CHECKING:
    from tests.plugin.project import Project

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

# Says when it is in the middle of a forward pass, and stays there.
SLOW = """
import pathlib
import time

import nets


class Slow(nets.Net):
    def forward(self, image):
        if image.shape[0] > 1:
            pathlib.Path("measuring").touch()
            time.sleep(60)
        return super().forward(image)


def net():
    return Slow()
"""


def heeds_interrupts() -> None:
    """What was started in the background of a shell ignores Ctrl-C, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_update_that_is_ended_leaves_every_old_baseline_whole(
    project: Project, sent: signal.Signals
) -> None:
    project.suite(net("a"), net("b", "python:other:net"))
    project.write("other.py", "from nets import net")
    project.record()
    before = project.baselines()
    project.write("other.py", SLOW)
    command = project.command("--isotest", "--isotest-update=all")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=heeds_interrupts
    ) as process:
        deadline = time.monotonic() + 100
        while not (project.path / "measuring").exists() and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(sent)
        output, _ = process.communicate(timeout=30)
    if sent is signal.SIGINT:
        assert process.returncode == 2
        assert "KeyboardInterrupt" in output
        assert "INTERNALERROR" not in output
    else:
        assert process.returncode == -signal.SIGKILL
    assert project.baselines() == before
    for name in "ab":
        read_profile(project.baseline(name))


def test_what_a_killed_writer_left_behind_is_no_baseline(project: Project) -> None:
    """It is neither read nor counted, and the next recording goes on beside it."""
    project.suite()
    project.record()
    left = project.write("baselines/tiny/.net.json.abandoned.tmp", "{")
    assert project.run().ret == 0
    assert project.run("--isotest-update=all").ret == 0
    assert project.run().ret == 0
    assert left.parent.exists()


def test_two_runs_at_once_record_into_one_folder(project: Project) -> None:
    project.suite(net("a"), net("b"))
    command = project.command("--isotest", "--isotest-update=all", "-q")
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for run in runs:
        output, _ = run.communicate(timeout=120)
        assert run.returncode == 0, output
    assert sorted(project.baselines()) == ["tiny/a.json", "tiny/b.json"]
    assert project.run().ret == 0
