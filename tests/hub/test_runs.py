"""Whole runs of ``pytest --isotest``: with the hub, with its refusals, and after it is gone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.hub.client import environment
from tests.hub.repositories import COMMIT, IMAGES, STRANGER
from tests.hub.server import served
from tests.plugin.project import QUICK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hub.client import Client
    from tests.hub.server import Hub, Repository

VISION = """
modality = "vision"
[data]
source = "hub:tiny/scenes?split=validation&group=scene"
[checks.anisotropy]
max = 0.9999
"""
TEXT = """
modality = "text"
[data]
source = "hub:tiny/sentences?split=train"
[measure]
packing = "documents"
length = 8
[checks.anisotropy]
max = 0.9999
"""


class Runs:
    """A project whose runs share a hub's cache."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder = folder
        self.endpoint = endpoint
        self.home = folder / "home"
        (folder / "suites").mkdir(parents=True)
        (folder / "pytest.ini").write_text("[pytest]\n")

    def suite(self, name: str, text: str, *sources: str) -> None:
        """Write one with an entry for each source, named after its repository."""
        entries = (
            f'[[models]]\nname = "{re.split("[/@]", source)[1]}"\nsource = "{source}"\n'
            for source in sources
        )
        (self.folder / "suites" / f"{name}.toml").write_text(text + "\n".join(entries))

    def run(self, *options: str, token: str | None = None) -> dict[str, Any]:
        """Exit code, and the entries by name as the JSON report has them."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", *QUICK, "--isotest", f"--isotest-json={report}"]
        done = self._do([*command, *options, "suites"], token)
        assert report.is_file(), done.stdout + done.stderr
        entries = {each["model"]: each for each in json.loads(report.read_text())["entries"]}
        return {"code": done.returncode, "output": done.stdout, **entries}

    def shell(self, command: str) -> None:
        """What a message says to run."""
        python = f"{sys.executable} "
        assert command.startswith("python ")
        done = self._do(["sh", "-c", python + command.removeprefix("python ")], None)
        assert done.returncode == 0, done.stderr

    def _do(self, command: list[str], token: str | None) -> subprocess.CompletedProcess[str]:
        own = {"ISOTEST_CACHE_DIR": str(self.folder / "cache")}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment(self.endpoint, self.home, token) | own,
            capture_output=True,
            text=True,
            timeout=300,
        )


def message(entry: dict[str, Any]) -> str:
    """The one message of an entry that could not be measured."""
    (text,) = {check["message"] for check in entry["checks"]}
    return str(text)


def test_a_stream_leaves_no_copy_and_the_message_says_how_to_make_one(
    hub: Hub, client: Client
) -> None:
    source = "hub:tiny/plain@v1?split=validation"
    streamed = client.read(source, samples=IMAGES)
    assert streamed["description"]["selection"].startswith("stream")
    answer = client.read(source, download=False)
    assert answer["error"] == "MissingError"
    for part in ("at v1 is not on this machine", "to stream it, which leaves no copy"):
        assert part in answer["message"]
    call = 'datasets.load_dataset("tiny/plain", revision="v1")'
    assert answer["message"].endswith(f": python -c 'import datasets; {call}'")
    client.prepare("tiny/plain", revision="v1")
    hub.asked.clear()
    for revision in ("@v1", f"@{COMMIT}", ""):
        again = client.read(f"hub:tiny/plain{revision}?split=validation", download=False)
        assert sorted(again["digests"]) == sorted(streamed["digests"])
    other = client.read("hub:tiny/plain@v2?split=validation", download=False)
    assert "at v2 is not on this machine" in other["message"]
    assert hub.asked == []


def test_downloaded_then_measured_again_without_the_hub(
    repositories: dict[str, Repository], tmp_path: Path
) -> None:
    refused = {
        "gated": "accept its terms on the page of the model tiny/gated on the hub",
        "absent": "the hub has no model tiny/absent; correct the name",
        "sharded": "tiny/sharded has no revision 'gone'",
    }
    with served(dict(repositories), (STRANGER,)) as hub:
        runs = Runs(tmp_path / "project", hub.endpoint)
        runs.suite("text", TEXT, "hub:tiny/bert@v1")
        runs.suite("vision", VISION, "hub:tiny/vit@main")
        nothing = runs.run()
        assert nothing["code"] == 1
        assert hub.asked == []
        for name in ("bert", "vit"):
            said = message(nothing[name]).splitlines()[0]
            runs.shell(said.partition("for later runs: ")[2])
        others = ("hub:tiny/gated", "hub:tiny/absent", "hub:tiny/sharded@gone")
        runs.suite("vision", VISION, "hub:tiny/vit@main", *others)
        first = runs.run("--isotest-download", token=STRANGER)
    assert first["code"] == 1
    for name, part in refused.items():
        assert not first[name]["green"]
        assert part in message(first[name])
        assert "Traceback" not in message(first[name])
    # The server is gone.
    runs.suite("vision", VISION, "hub:tiny/vit@main", "hub:tiny/gated")
    again = runs.run()
    assert "tiny/gated is not in the Hugging Face cache" in message(again["gated"])
    for name in ("bert", "vit"):
        for run in (first, again):
            assert run[name]["green"], run["output"]
            assert not run[name]["cached"]
            assert run[name]["profile"]["provenance"].pop("created")
            assert run[name]["profile"]["provenance"]["commit"] == COMMIT
        assert again[name]["profile"] == first[name]["profile"]
