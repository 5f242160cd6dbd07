"""As much of the hub as loading models and data sets needs, on the loopback interface.

The documented API: ``/api/models/OWNER/NAME/revision/REVISION`` names the commit and its files,
``…/tree/REVISION`` lists them, ``…/paths-info/REVISION`` describes some, and
``/OWNER/NAME/resolve/REVISION/FILE`` is a file (``/datasets/OWNER/NAME/…`` of a data set). Small
files come from there; large ones by a redirect to a store of another host name, which is told no
token. Without a token nobody is told more than the hub tells.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGE = (".safetensors", ".bin", ".parquet", ".arrow")
"""What the hub keeps in the store behind a redirect."""


@dataclass
class Repository:
    """One commit of one repository.

    Attributes:
        names: the branches and tags that stand for it.
        gated: its files are for the tokens in ``readers``; what it is, is told to all.
        private: to all but ``readers`` it isn't there.
        locked: nothing is told to anybody, and no reason given, as by some mirrors.
        down: nothing works today.
    """

    folder: Path
    commit: str
    names: tuple[str, ...] = ("main", "v1")
    gated: bool = False
    private: bool = False
    locked: bool = False
    down: bool = False
    readers: tuple[str, ...] = ()

    def files(self) -> dict[str, Path]:
        """Name below the folder → file."""
        found = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path for path in found}


@dataclass(frozen=True)
class Asked:
    """A request that was answered.

    Attributes:
        file: ``owner/name/file`` (``datasets/owner/name/file``) where there is one; else the path.
        range: of the bytes asked for, as in the header.
        token: that came with it.
        stored: whether it went to the store.
    """

    method: str
    file: str
    status: int
    range: str | None = None
    token: str | None = None
    stored: bool = False


@dataclass
class Fault:
    """What is wrong with the transfer of a file.

    Attributes:
        cut: the connection ends before this byte of the file.
        once: only the first time.
        short: the size that the file really has, less than what is announced.
    """

    cut: int | None = None
    once: bool = True
    short: int | None = None


@dataclass
class Hub:
    """What is served, and what was asked for so far."""

    endpoint: str
    repositories: dict[str, Repository]
    asked: list[Asked] = field(default_factory=list)
    faults: dict[str, Fault] = field(default_factory=dict)
    tokens: tuple[str, ...] = ()

    @property
    def fetched(self) -> list[str]:
        """The files of which bytes were sent."""
        got = (each for each in self.asked if each.method == "GET" and each.status in (200, 206))
        return [each.file for each in got if not each.file.startswith("/")]

    def ranges(self, file: str) -> list[str | None]:
        """The ranges of a file that were asked for and sent, in order."""
        return [
            each.range
            for each in self.asked
            if each.method == "GET" and each.file == file and each.status in (200, 206)
        ]


@dataclass
class Answer:
    """A response; ``file`` where it is (or leads to) one of a repository."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    file: str | None = None


@contextmanager
def served(repositories: dict[str, Repository], tokens: tuple[str, ...] = ()) -> Iterator[Hub]:
    """Serve repositories on a port of their own.

    Args:
        repositories: by ``owner/name``, or ``datasets/owner/name`` of a data set.
        tokens: of accounts that the hub knows.
    """
    hub = Hub("", repositories, tokens=tokens)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(b"")

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _answer(self, form: bytes) -> None:
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
            answer = _answer(hub, self.path, token, form)
            part = self.headers.get("Range")
            fault = hub.faults.get(answer.file or "") if self.command == "GET" else None
            if fault is not None and answer.status == 200 and fault.short is not None:
                answer.body = answer.body[: fault.short]
            start = 0
            if part is not None and answer.status == 200:
                start = _cut_out(answer, part)
            hub.asked.append(
                Asked(
                    self.command,
                    answer.file or self.path,
                    answer.status,
                    part,
                    token,
                    self.path.startswith("/store/"),
                )
            )
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command == "HEAD":
                return
            if fault is not None and answer.status in (200, 206) and fault.cut is not None:
                answer.body = answer.body[: max(fault.cut - start, 0)]
                if fault.once:
                    del hub.faults[answer.file or ""]
            self.wfile.write(answer.body)

        def log_message(self, *args: object) -> None:
            """Quiet."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *args: object) -> None:
            """A client that hangs up is no news."""

    server = Server(("127.0.0.1", 0), Handler)
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _cut_out(answer: Answer, part: str) -> int:
    """Reduce a whole file to the range asked for; where that starts."""
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", part)
    assert found is not None, part
    size = len(answer.body)
    start, stop = int(found.group(1)), min(int(found.group(2) or size), size - 1)
    if start >= size:
        answer.status, answer.body = 416, b""
        answer.headers["Content-Range"] = f"bytes */{size}"
        return 0
    answer.status, answer.body = 206, answer.body[start : stop + 1]
    answer.headers["Content-Range"] = f"bytes {start}-{stop}/{size}"
    return start


def _answer(hub: Hub, path: str, token: str | None, form: bytes) -> Answer:
    path, _, query = path.partition("?")
    path = unquote(path)
    name = r"([\w.-]+/[\w.-]+)"
    key = rf"((?:datasets/)?{name[1:-1]})"
    if found := re.fullmatch(rf"/store/{key}/(.+)", path):
        if parse_qs(query).get("signed") != [_signature(hub, found.group(1))]:
            return Answer(403)
        return _content(hub.repositories[found.group(1)], found.group(1), found.group(2), {})
    api = re.fullmatch(rf"/api/(models|datasets)/{name}(?:/([\w-]+)(?:/([^/]+)(?:/(.+))?)?)?", path)
    file = re.fullmatch(rf"/{key}/resolve/([^/]+)/(.+)", path)
    if api is not None:
        kind, repo, what, revision, inside = api.groups()
        repo = f"datasets/{repo}" if kind == "datasets" else repo
    elif file is not None:
        what, (repo, revision, inside) = "resolve", file.groups()
    else:
        return Answer(404)
    if token is not None and token not in hub.tokens:
        return Answer(401, {"X-Error-Message": "Invalid credentials in Authorization header"})
    repository = hub.repositories.get(repo)
    if repository is not None and repository.private and token not in repository.readers:
        repository = None
    if repository is None:
        # To those without access the hub says that what is private isn't there. (Without a token
        # it says 401, which the client takes for the same, but over https only.)
        return Answer(404 if token else 401, {"X-Error-Code": "RepoNotFound"})
    if repository.locked or repository.down:
        return Answer(401 if repository.locked else 503)
    if revision not in (None, *repository.names, repository.commit):
        return Answer(
            404,
            {"X-Error-Code": "RevisionNotFound", "X-Error-Message": f"Invalid rev id: {revision}"},
        )
    if what == "auth-check":
        return _refusal(repo, repository, token) or Answer(200)
    if what == "resolve":
        return _resolve(hub, repo, repository, inside, token)
    recursive = parse_qs(query).get("recursive") == ["true"]
    return _described(repository, repo, what, inside, form, recursive=recursive)


def _resolve(hub: Hub, repo: str, repository: Repository, inside: str, token: str | None) -> Answer:
    commit = {"X-Repo-Commit": repository.commit}
    if refusal := _refusal(repo, repository, token):
        return refusal
    path = repository.files().get(inside)
    if path is None:
        return Answer(404, {**commit, "X-Error-Code": "EntryNotFound"})
    if not inside.endswith(LARGE):
        return _content(repository, repo, inside, commit)
    content = path.read_bytes()
    # Another host name, as the hub's store has; the signature stands for the token.
    store = hub.endpoint.replace("127.0.0.1", "localhost")
    return Answer(
        302,
        {
            **commit,
            "Location": f"{store}/store/{repo}/{inside}?signed={_signature(hub, repo)}",
            "X-Linked-Etag": f'"{hashlib.sha256(content).hexdigest()}"',
            "X-Linked-Size": str(len(content)),
        },
        b"",
        f"{repo}/{inside}",
    )


def _refusal(repo: str, repository: Repository, token: str | None) -> Answer | None:
    if not repository.gated or token in repository.readers:
        return None
    message = f"Access to {repo} is restricted and you are not in the authorized list."
    headers = {"X-Error-Code": "GatedRepo", "X-Error-Message": message}
    return Answer(401 if token is None else 403, headers)


def _content(repository: Repository, repo: str, inside: str, headers: dict[str, str]) -> Answer:
    content = (repository.folder / inside).read_bytes()
    headers = {**headers, "ETag": f'"{_object_id(content)}"', "Accept-Ranges": "bytes"}
    return Answer(200, headers, content, f"{repo}/{inside}")


def _described(
    repository: Repository,
    repo: str,
    what: str | None,
    inside: str | None,
    form: bytes,
    *,
    recursive: bool,
) -> Answer:
    entries = [_entry(repository, path) for path in sorted(repository.folder.rglob("*"))]
    answer: object
    if what == "tree":
        folder = repository.folder / (inside or "")
        if not folder.is_dir():
            return Answer(404, {"X-Error-Code": "EntryNotFound"})
        below = sorted(folder.rglob("*") if recursive else folder.iterdir())
        answer = [_entry(repository, path) for path in below]
    elif what == "paths-info":
        wanted = json.loads(form)["paths"] if form.startswith(b"{") else parse_qs(form.decode())
        names = wanted["paths"] if isinstance(wanted, dict) else wanted
        answer = [entry for entry in entries if entry["path"] in names]
    elif what in (None, "revision"):
        answer = {
            "id": repo.removeprefix("datasets/"),
            "sha": repository.commit,
            "private": repository.private,
            "gated": "manual" if repository.gated else False,
            "siblings": [{"rfilename": name} for name in repository.files()],
        }
    else:
        return Answer(404)
    return Answer(200, {"Content-Type": "application/json"}, json.dumps(answer).encode())


def _entry(repository: Repository, path: Path) -> dict[str, Any]:
    name = path.relative_to(repository.folder).as_posix()
    if path.is_dir():
        oid = hashlib.sha1(name.encode()).hexdigest()
        return {"type": "directory", "path": name, "size": 0, "oid": oid}
    content = path.read_bytes()
    entry = {"type": "file", "path": name, "size": len(content), "oid": _object_id(content)}
    if name.endswith(LARGE):
        digest = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 134}
    return entry


def _object_id(content: bytes) -> str:
    """The id that git gives a file, which the hub uses as its ETag."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _signature(hub: Hub, repo: str) -> str:
    return hashlib.sha256(f"{hub.endpoint}/{repo}".encode()).hexdigest()[:16]
