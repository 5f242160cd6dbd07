"""What takes longer than two seconds shows how far it is, past pytest's capture."""

from __future__ import annotations

import os
import pty
import subprocess
from typing import TYPE_CHECKING

from tests.plugin.project import net

if TYPE_CHECKING:
    from tests.plugin.project import Project

SLOW = """
import time

import nets


class Slow(nets.Net):
    def forward(self, image):
        time.sleep(0.6)
        return super().forward(image)


def net():
    return Slow()
"""
LIMIT = "[checks.anisotropy]\nmax = 1.0"


def on_a_terminal(project: Project) -> str:
    """The output of a run whose standard output is a terminal."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        project.command("--isotest"), cwd=project.path, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        output = b""
        try:
            while part := os.read(master, 4096):
                output += part
        except OSError:
            pass  # Linux says so when the other end is closed
    os.close(master)
    assert process.returncode == 0, output.decode()
    return output.decode()


def test_a_long_measurement_shows_samples_rate_and_time_left(project: Project) -> None:
    project.write("slow.py", SLOW)
    entry = net(source="python:slow:net", more="measure = { batch_size = 2 }")
    project.suite(entry, checks=LIMIT)
    output = on_a_terminal(project)
    assert "isotest: net: 8/12 samples," in output
    assert "samples/s, 00:0" in output


def test_a_short_measurement_shows_none(project: Project) -> None:
    project.suite(net(), checks=LIMIT)
    assert "samples/s" not in on_a_terminal(project)


NOTICE = """
import logging

import nets


def net():
    logging.getLogger("isotest.models").warning("isotest: converting %s once", "net.gguf")
    return nets.Net()
"""


def test_long_work_before_a_measurement_is_announced(project: Project) -> None:
    project.write("noticed.py", NOTICE)
    project.suite(net(source="python:noticed:net"), checks=LIMIT)
    assert on_a_terminal(project).count("isotest: converting net.gguf once") == 1
