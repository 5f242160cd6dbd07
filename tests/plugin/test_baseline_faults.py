"""Baselines that cannot be read, trusted or written."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from isotest.profile_json import read_profile, write_profile
from tests.plugin.project import net, write_images

if TYPE_CHECKING:
    from tests.plugin.project import Project

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def recorded(project: Project) -> Project:
    """One entry and its baseline."""
    project.suite()
    project.record()
    return project


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def edited(content: bytes) -> bytes:
    changed = content.replace(b'"value": 0.', b'"value": 0.9', 1)
    assert changed != content
    return changed


def foreign(content: bytes) -> bytes:
    document = json.loads(content)
    document["format_version"] = 99
    return json.dumps(document).encode()


def in_conflict(content: bytes) -> bytes:
    return b"<<<<<<< HEAD\n" + content + b"=======\n" + content + b">>>>>>> main\n"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda _: b"", "the file is empty; delete it and record again *"),
        (lambda _: b"null", 'expected a JSON object with "format"*'),
        (lambda _: b"\xff\xfe", "expected UTF-8 text*"),
        (cut, "not JSON, perhaps cut short: *"),
        (edited, "its content does not match its own digest: it was edited or damaged *"),
        (foreign, "written by isotest * in format 99; this isotest reads format 2; upgrade*"),
        (in_conflict, "it holds the marks of an unresolved merge conflict*"),
    ],
)
def test_a_bad_baseline_is_one_message(recorded: Project, damage: object, words: str) -> None:
    assert callable(damage)
    path = recorded.baseline()
    bad = damage(path.read_bytes())
    path.write_bytes(bad)
    result = recorded.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"*baselines/tiny/net.json: {words}"])
    result.stdout.no_fnmatch_line("*Traceback*")
    assert path.read_bytes() == bad
    result.assert_outcomes(failed=2, passed=2)


def test_a_baseline_of_another_entry_is_refused(recorded: Project) -> None:
    path = recorded.baseline()
    write_profile(replace(read_profile(path), model="other"), path)
    result = recorded.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*net.json: expected the baseline of model 'net' of suite 'tiny', but it belongs to *"]
    )


def test_a_folder_in_the_baseline_s_place(recorded: Project) -> None:
    recorded.baseline().unlink()
    recorded.baseline().mkdir()
    result = recorded.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*net.json: expected a file, found a folder or a device*"])


def test_other_images_are_not_comparable(recorded: Project) -> None:
    write_images(recorded.path / "images", seed=1)
    result = recorded.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*not comparable: data: the baseline saw 12 samples *…, this run 12 samples *…"]
    )


def test_one_image_more_is_not_comparable(recorded: Project) -> None:
    write_images(recorded.path / "images" / "more", count=1, seed=1)
    result = recorded.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*not comparable: *data.samples: the baseline has 12, this r*"])


@pytest.mark.parametrize(
    ("more", "difference"),
    [
        ("measure = { representation = 'flattened' }", "protocol, representation: the baseline "),
        ("measure = { dtype = 'float64' }", "protocol, dtype: the baseline has 'float32', this"),
        ("layers = ['blocks.0', 'norm']", "layers: *"),
    ],
)
def test_another_protocol_is_not_comparable(recorded: Project, more: str, difference: str) -> None:
    recorded.suite(net(more=more))
    result = recorded.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"*not comparable: *{difference}*"])


def test_an_inconclusive_outcome_that_is_allowed_does_not_excuse_what_was_not_compared(
    recorded: Project,
) -> None:
    recorded.suite(checks='[checks.anisotropy]\nbaseline = {}\ninconclusive = "pass"')
    write_images(recorded.path / "images", seed=1)
    assert recorded.run().ret == 1


def test_a_file_where_the_folder_must_be(project: Project) -> None:
    project.suite()
    file = project.write("baselines", "mine")
    result = project.run("--isotest-update=missing")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*/baselines/tiny/net.json: its folder could not be made: *"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    assert file.read_text() == "mine"


@pytest.mark.skipif(ROOT, reason="root may write everywhere")
def test_a_read_only_folder_is_red_and_the_old_baseline_stays(recorded: Project) -> None:
    before = recorded.baselines()
    folder = recorded.baseline().parent
    folder.chmod(0o555)
    try:
        result = recorded.run("--isotest-update=all")
    finally:
        folder.chmod(0o755)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED suites/tiny.toml::net::recorded - *"])
    assert recorded.baselines() == before


def test_a_disk_without_room_is_red_and_the_old_baseline_stays(
    recorded: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``ENOSPC`` at the moment when the data must reach the disk."""

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    before = recorded.baselines()
    monkeypatch.setattr(os, "fsync", full)
    result = recorded.run("--isotest-update=all")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*net.json: *No space left on device*"])
    assert recorded.baselines() == before


def test_a_link_out_of_the_folder_is_not_followed(project: Project) -> None:
    project.suite()
    elsewhere = project.path / "elsewhere"
    elsewhere.mkdir()
    (project.path / "baselines").mkdir()
    (project.path / "baselines" / "tiny").symlink_to(elsewhere)
    for options in ((), ("--isotest-update=all",)):
        result = project.run(*options)
        assert result.ret == 1
        assert "a symbolic link leads to" in str(result.stdout)
    assert list(elsewhere.iterdir()) == []
