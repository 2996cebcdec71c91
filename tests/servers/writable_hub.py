"""The hub on loopback for those who push: repositories are made and committed to, by small files and by large ones."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.servers.hub import COMMIT, Hub, HubHandler, serving

TOKEN = "hf_canarycanarycanarycanary"
LARGE = 20_000
"""Bytes from which on a file is sent apart from its commit."""
_ACTION = re.compile(r"/api/(?:datasets|models)/(?P<repo>[^/]+/[^/]+)/(?P<what>preupload|commit|settings)(?:/main)?")
_BATCH = re.compile(r"/datasets/[^/]+/[^/]+\.git/info/lfs/objects/batch")


@dataclass(slots=True)
class Repository:
    """A data set that was made here."""

    is_private: bool
    gated: Any = False
    messages: list[str] = field(default_factory=list)
    """Of its commits."""


@dataclass(slots=True)
class WritableHub(Hub):
    """What was pushed, and faults to order."""

    user: str = "ada"
    organisations: tuple[str, ...] = ("birds",)
    repositories: dict[str, Repository] = field(default_factory=dict)
    proposed: list[dict[str, bytes]] = field(default_factory=list)
    """Files of each pull request."""
    large: dict[str, bytes] = field(default_factory=dict)
    """Contents that were sent apart, by their hashes."""
    faults: dict[str, list[int]] = field(default_factory=dict)
    """Status codes of the next answers by what is asked: ``whoami``, ``create``, ``preupload``, ``commit``."""
    meanwhile: dict[str, bytes] = field(default_factory=dict)
    """Files that somebody else commits just before the next commit."""
    asked_for: list[str] = field(default_factory=list)
    """What was asked, in order."""

    def files(self, repository: str) -> dict[str, bytes]:
        return dict(self.data_sets[repository])

    def commit(self, repository: str, files: dict[str, bytes]) -> None:
        self.data_sets = {**self.data_sets, repository: {**self.data_sets[repository], **files}}
        last = self.heads.get(repository, COMMIT)
        self.heads[repository] = hashlib.sha1(f"{last} {sorted(files)}".encode()).hexdigest()


@contextmanager
def writable_hub() -> Iterator[WritableHub]:
    """Serve a hub of one user until the context ends."""
    served = WritableHub({})
    with serving(served, _Handler):
        yield served


class _Handler(HubHandler):
    hub: WritableHub

    def do_PUT(self) -> None:
        self._change()

    def do_POST(self) -> None:
        self._change()

    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/api/whoami-v2":
            if self._goes_well("whoami"):
                self.json({"name": self.hub.user, "orgs": [{"name": name} for name in self.hub.organisations]})
            return
        super().do_GET()

    def _change(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = unquote(urlsplit(self.path).path)
        if path.startswith("/large/"):
            self.hub.large[path.removeprefix("/large/")] = body
            self.json({})
        elif path == "/api/validate-yaml":
            self.json({"warnings": [], "errors": []})
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif _BATCH.fullmatch(path):
            self._batch(json.loads(body))
        elif match := _ACTION.fullmatch(path):
            self._act(match["repo"], match["what"], body)
        else:
            self.absent("EntryNotFound")

    def _goes_well(self, what: str) -> bool:
        self.hub.asked_for.append(what)
        codes = self.hub.faults.get(what)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            codes = [401]
        if not codes:
            return True
        self.send_response(codes.pop(0))
        self.send_header("X-Error-Message", f"no {what} today")
        self.body(b"")
        return False

    def _create(self, asked: dict[str, Any]) -> None:
        if not self._goes_well("create"):
            return
        name = f"{asked.get('organization') or self.hub.user}/{asked['name']}"
        assert asked["type"] == "dataset"
        is_new = name not in self.hub.repositories
        if is_new:
            self.hub.repositories[name] = Repository(asked.get("visibility") == "private")
            self.hub.data_sets = {**self.hub.data_sets, name: {}}
        self.send_response(200 if is_new else 409)
        self.send_header("Content-Type", "application/json")
        self.body(json.dumps({"url": f"{self.hub.address}/datasets/{name}", "name": name}).encode())

    def _act(self, repository: str, what: str, body: bytes) -> None:
        if not self._goes_well(what):
            return
        if what == "settings":
            self.hub.repositories[repository].gated = json.loads(body)["gated"]
            self.json({})
        elif what == "preupload":
            files = json.loads(body)["files"]
            modes = [(one["path"], "lfs" if one["size"] >= LARGE else "regular") for one in files]
            self.json({"files": [{"path": path, "uploadMode": mode, "shouldIgnore": False} for path, mode in modes]})
        else:
            self._commit(repository, [json.loads(line) for line in body.splitlines()])

    def _commit(self, repository: str, lines: list[dict[str, Any]]) -> None:
        if self.hub.meanwhile:
            self.hub.commit(repository, self.hub.meanwhile)
            self.hub.meanwhile = {}
        header = next(line["value"] for line in lines if line["key"] == "header")
        if header["parentCommit"] != self.hub.heads.get(repository, COMMIT):
            self.send_response(412)
            self.body(b"")
            return
        files = {}
        for line in lines:
            found = line["value"]
            if line["key"] == "file":
                files[found["path"]] = base64.b64decode(found["content"])
            elif line["key"] == "lfsFile":
                files[found["path"]] = self.hub.large[found["oid"]]
        if "create_pr=1" in urlsplit(self.path).query:
            self.hub.proposed.append(files)
            address = f"{self.hub.address}/{repository}"
            request = f"{address}/discussions/{len(self.hub.proposed)}"
            self.json({"commitUrl": f"{address}/commit/{COMMIT}", "commitOid": COMMIT, "pullRequestUrl": request})
            return
        self.hub.commit(repository, files)
        self.hub.repositories[repository].messages.append(header["summary"])
        head = self.hub.heads[repository]
        self.json({"commitUrl": f"{self.hub.address}/datasets/{repository}/commit/{head}", "commitOid": head})

    def _batch(self, asked: dict[str, Any]) -> None:
        objects = [
            {**one, "actions": {"upload": {"href": f"{self.hub.address}/large/{one['oid']}"}}}
            for one in asked["objects"]
        ]
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.git-lfs+json")
        self.body(json.dumps({"transfer": "basic", "objects": objects}).encode())
