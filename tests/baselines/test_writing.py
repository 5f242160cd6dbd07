"""Whatever happens while a baseline is written, the file is the old one or the new one, whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isotest.baselines import BaselineStore
from isotest.errors import BaselineError
from isotest.profile_json import dump_profile, read_profile, write_profile
from tests.baselines.cases import layer, profile, without_temporaries

if TYPE_CHECKING:
    from collections.abc import Iterator

OLD = profile()
NEW = profile(layers=tuple(layer(str(number), 0.5) for number in range(200)))

WRITE_FOREVER = """
import sys
from pathlib import Path
from isotest.profile_json import write_profile
from tests.baselines.test_writing import OLD, NEW
while True:
    for profile in (NEW, OLD):
        write_profile(profile, Path(sys.argv[1]))
        print("x", flush=True)
"""

WRITE_ONCE = """
import os, resource, sys
from pathlib import Path
from isotest.errors import BaselineError
from isotest.profile_json import write_profile
from tests.baselines.test_writing import NEW
{prepare}
try:
    write_profile(NEW, Path(sys.argv[1]))
except BaselineError as error:
    print(error)
    sys.exit(3)
"""

ROOT = Path(__file__).parents[2]


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    )


def write_once(path: Path, prepare: str) -> tuple[int, str]:
    process = start(WRITE_ONCE.format(prepare=prepare), path)
    output, _ = process.communicate(timeout=60)
    return process.returncode, output


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    path = tmp_path / "vit.json"
    write_profile(OLD, path)
    return path


def assert_untouched(path: Path) -> None:
    assert path.read_bytes() == dump_profile(OLD, path)
    assert without_temporaries(path.parent) == [path.name]


@pytest.mark.parametrize("milliseconds", [0, 3, 11, 29])
def test_a_kill_in_the_middle_of_updates_leaves_a_whole_file(
    baseline: Path, milliseconds: int
) -> None:
    process = start(WRITE_FOREVER, baseline)
    assert process.stdout is not None
    for _ in range(3):
        assert process.stdout.readline() == "x\n"
    time.sleep(milliseconds / 1000)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert read_profile(baseline) in (OLD, NEW)


def test_what_a_killed_update_left_is_cleared_by_a_later_one(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    path = store.write(OLD)
    abandoned = path.parent / ".0123456789abcdef.isotest-tmp"
    in_use = path.parent / ".fedcba9876543210.isotest-tmp"
    for leftover in (abandoned, in_use):
        leftover.write_bytes(b"{")
    os.utime(abandoned, (1, 1))
    store.write(OLD)
    assert without_temporaries(path.parent) == [in_use.name, path.name]


def test_a_disk_that_fills_up_leaves_the_old_file(baseline: Path) -> None:
    # A limit on the size of files fails in the same place, for any user, with another number.
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))"
    code, output = write_once(baseline, limit)
    assert (code, "could not be written: File too large" in output) == (3, True)
    assert_untouched(baseline)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    if not sys.platform.startswith("linux") or subprocess.run(command, check=False).returncode:
        pytest.skip("mounting a tiny file system takes Linux and the right to")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_the_old_file(tiny_disk: Path) -> None:
    path = tiny_disk / "vit.json"
    write_profile(OLD, path)
    assert len(dump_profile(NEW, path)) > 16 * 1024
    with pytest.raises(BaselineError, match="No space left on device") as error:
        write_profile(NEW, path)
    assert str(path) in str(error.value)
    assert_untouched(path)


def test_a_read_only_folder_leaves_the_old_file() -> None:
    # Permissions don't bind root, so the writer becomes somebody else, who must get to the folder.
    with tempfile.TemporaryDirectory() as name:
        baseline = Path(name, "vit.json")
        write_profile(OLD, baseline)
        baseline.parent.chmod(0o555)
        try:
            code, output = write_once(baseline, "os.getuid() or os.setuid(65534)")
        finally:
            baseline.parent.chmod(0o755)
        assert (code, "could not be written: Permission denied" in output) == (3, True), output
        assert_untouched(baseline)


def test_ctrl_c_while_writing_leaves_the_old_file(
    baseline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_profile(NEW, baseline)
    assert_untouched(baseline)


def test_a_folder_in_the_files_place_is_named(tmp_path: Path) -> None:
    path = tmp_path / "vit.json"
    path.mkdir()
    with pytest.raises(BaselineError, match="could not be written: Is a directory"):
        write_profile(NEW, path)
    assert without_temporaries(tmp_path) == ["vit.json"]


def test_a_file_in_the_folders_place_is_named(tmp_path: Path) -> None:
    root = tmp_path / "baselines"
    root.write_text("not a folder")
    with pytest.raises(BaselineError, match="its folder could not be made"):
        BaselineStore(root).write(NEW)
    assert root.read_text() == "not a folder"


def test_a_baseline_is_as_readable_as_any_new_file(baseline: Path) -> None:
    plain = baseline.with_name("plain")
    plain.touch()
    assert baseline.stat().st_mode == plain.stat().st_mode


def test_two_writers_and_a_reader_meet_only_whole_files(baseline: Path) -> None:
    writers = [start(WRITE_FOREVER, baseline) for _ in range(2)]
    seen = {"old": 0, "new": 0}
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "x\n"
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline:
            found = read_profile(baseline)
            assert found in (OLD, NEW)
            seen["old" if found == OLD else "new"] += 1
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate(timeout=60)
    assert min(seen.values()) > 0, seen
