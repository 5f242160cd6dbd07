"""As much of the hub as loading a model needs, on the loopback interface.

the documented hub API: ``/api/models/OWNER/NAME/revision/REVISION`` names the commit
and its files, ``…/tree/REVISION`` lists them, ``/OWNER/NAME/resolve/COMMIT/FILE`` is a file.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Repository:
    """One commit of one repository.

    Attributes:
        gated: its files are for those with access; what it is, is told to all.
        locked: nothing is told without a token, as by some mirrors.
    """

    folder: Path
    commit: str
    branch: str = "main"
    gated: bool = False
    locked: bool = False


@dataclass
class Hub:
    """What is served, and the files that were asked for so far."""

    endpoint: str
    repositories: dict[str, Repository]
    fetched: list[str] = field(default_factory=list)


@contextmanager
def served(repositories: dict[str, Repository]) -> Iterator[Hub]:
    """Serve repositories by ``owner/name`` on a port of its own."""
    hub = Hub("", repositories)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            status, headers, content = _answer(hub, self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(hub: Hub, path: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body, as the hub answers without a token."""
    api = re.fullmatch(
        r"/api/models/([\w.-]+/[\w.-]+)(?:/(?:revision|tree)/([\w.%-]+))?(?:\?.*)?", path
    )
    file = re.fullmatch(r"/([\w.-]+/[\w.-]+)/resolve/([\w.%-]+)/([\w./-]+)(?:\?.*)?", path)
    asked = api or file
    repository = hub.repositories.get(asked.group(1)) if asked else None
    if asked is None or repository is None:
        # To those without access the hub says that what is private isn't there.
        return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
    if repository.locked:
        return 401, {}, b"{}"
    revision = asked.group(2)
    if revision not in (None, repository.branch, repository.commit):
        return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
    commit = {"X-Repo-Commit": repository.commit}
    if file is None:
        files = sorted(repository.folder.iterdir())
        answer: object = {
            "id": asked.group(1),
            "sha": repository.commit,
            "siblings": [{"rfilename": child.name} for child in files],
        }
        if "/tree/" in path:
            answer = [
                {
                    "type": "file",
                    "path": child.name,
                    "size": child.stat().st_size,
                    "oid": hashlib.sha1(child.read_bytes()).hexdigest(),
                }
                for child in files
            ]
        return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()
    found = repository.folder / file.group(3)
    if repository.gated:
        return 401, {**commit, "X-Error-Code": "GatedRepo"}, b"{}"
    if not found.is_file():
        return 404, {**commit, "X-Error-Code": "EntryNotFound"}, b"{}"
    hub.fetched.append(f"{asked.group(1)}/{file.group(3)}")
    content = found.read_bytes()
    return 200, {**commit, "ETag": f'"{hashlib.sha256(content).hexdigest()}"'}, content
