"""The hub on loopback: listing and fetching files of data sets, as far as ``huggingface_hub`` and ``datasets`` ask."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0" * 40
Files = Mapping[str, bytes]
_API = re.compile(
    r"/api/(?:datasets|models)/(?P<repo>[^/]+/[^/]+)(?:/(?P<what>revision|tree|paths-info)/[^/]+(?:/(?P<path>.*))?)?"
)
_FILE = re.compile(r"(?:/datasets)?/(?P<repo>[^/]+/[^/]+)/resolve/[^/]+/(?P<path>.*)")


@dataclass(slots=True)
class Hub:
    """Data sets by name, each with its files by path; repositories of models are among them."""

    data_sets: Mapping[str, Files]
    address: str = ""
    damaged: set[str] = field(default_factory=set)
    """Paths of files whose next transfer has other content of the same length; later ones are right."""
    cut: dict[str, int] = field(default_factory=dict)
    """Bytes after which the next transfer of a file breaks off; later ones are whole."""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and range of every request for a file."""
    heads: dict[str, str] = field(default_factory=dict)
    """Last commit of a data set where it is another one than ``COMMIT``."""

    def environment(self, home: Path) -> dict[str, str]:
        """Return the variables by which a child process takes this for the hub, with its caches below ``home``."""
        ours = {"HF_DATASETS_CACHE", "HF_DATASETS_OFFLINE", "HF_HUB_CACHE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}
        return {
            **{name: text for name, text in os.environ.items() if name not in ours},
            "HF_ENDPOINT": self.address, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "127.0.0.1",
        }  # fmt: skip


@contextmanager
def hub(data_sets: Mapping[str, Files]) -> Iterator[Hub]:
    """Serve data sets until the context ends."""
    served = Hub(data_sets)
    with serving(served, HubHandler):
        yield served


@contextmanager
def serving(served: Hub, kind: type[HubHandler]) -> Iterator[None]:
    """Answer by a kind of handler until the context ends."""

    class Handler(kind):  # type: ignore[valid-type, misc]
        hub = served

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    served.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class HubHandler(BaseHTTPRequestHandler):
    hub: Hub

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""

    def _answer(self, body: bytes = b"") -> None:
        path = unquote(urlsplit(self.path).path)
        if match := _FILE.fullmatch(path):
            self._file(match["repo"], match["path"])
        elif match := _API.fullmatch(path):
            self._api(match["repo"], match["what"], match["path"] or "", body)
        else:
            self.absent("EntryNotFound")

    def _api(self, repository: str, what: str | None, path: str, body: bytes) -> None:
        files = self.hub.data_sets.get(repository)
        if files is None:
            self.absent("RepoNotFound")
        elif what == "tree":
            is_deep = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() in ("true", "1")
            self.json(_tree(files, path, is_deep))
        elif what == "paths-info":
            self.json([_entry(name, files[name]) for name in _asked_paths(body) if name in files])
        else:
            siblings = [{"rfilename": name} for name in files]
            self.json(
                {
                    "id": repository,
                    "sha": self.hub.heads.get(repository, COMMIT),
                    "siblings": siblings,
                    "private": False,
                    "tags": [],
                }
            )

    def _file(self, repository: str, name: str) -> None:
        stated = self.headers.get("Range", "")
        self.hub.asked.append((self.command, name, stated))
        content = self.hub.data_sets.get(repository, {}).get(name)
        if content is None:
            self.absent("EntryNotFound" if repository in self.hub.data_sets else "RepoNotFound")
            return
        sent = content
        if self.command == "GET" and name in self.hub.damaged:
            self.hub.damaged.discard(name)
            sent = bytes(byte ^ 1 for byte in content)
        start = int(stated.removeprefix("bytes=").partition("-")[0] or 0) if stated else 0
        self.send_response(206 if stated else 200)
        if stated:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        digest = hashlib.sha256(content).hexdigest()
        self.send_header("X-Linked-ETag", f'"{digest}"')
        self.send_header("X-Linked-Size", str(len(content)))
        self.send_header("ETag", f'"{digest}"')
        self.send_header("X-Repo-Commit", self.hub.heads.get(repository, COMMIT))
        self.body(sent[start:], self.hub.cut.pop(name, None) if self.command == "GET" else None)

    def json(self, document: object) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.body(json.dumps(document).encode())

    def absent(self, code: str) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self.body(b"")

    def body(self, content: bytes, cut: int | None = None) -> None:
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[:cut])
        self.close_connection = cut is not None


def _asked_paths(body: bytes) -> list[str]:
    """The paths of a request for some entries, which is a form or JSON."""
    text = body.decode()
    stated = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text).get("paths", [])
    return [stated] if isinstance(stated, str) else list(stated)


def _tree(files: Files, path: str, is_deep: bool) -> list[dict[str, object]]:
    prefix = f"{path.strip('/')}/" if path.strip("/") else ""
    below = {name: content for name, content in files.items() if name.startswith(prefix)}
    if is_deep:
        return [_entry(name, content) for name, content in below.items()]
    flat = [_entry(name, content) for name, content in below.items() if "/" not in name[len(prefix) :]]
    folders = sorted({prefix + name[len(prefix) :].split("/")[0] for name in below if "/" in name[len(prefix) :]})
    return [*flat, *({"type": "directory", "path": name, "oid": COMMIT, "size": 0} for name in folders)]


def _entry(name: str, content: bytes) -> dict[str, object]:
    digest = hashlib.sha256(content).hexdigest()
    lfs = {"oid": digest, "size": len(content), "pointerSize": 100}
    return {"type": "file", "path": name, "size": len(content), "oid": digest[:40], "lfs": lfs}
