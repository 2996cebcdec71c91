"""The process in which tasks and models are checked: a job is a JSON line, answered by one for each step and a last."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import IO, Any

import orjson

from lmms_eval.checks.jobs import GroupMembers
from lmms_eval.checks.network import refuse_connections
from lmms_eval.checks.one_task import check_task
from lmms_eval.tasks.yaml.included import include_again
from lmms_eval.tasks.yaml.loader import YamlReader
from lmms_eval.utils.line_server import own_pipes
from lmms_eval.utils.logging import configure_logging


class _Desk:
    def __init__(self, start: Mapping[str, Any], replies: IO[bytes]) -> None:
        self._documents, self._replies = start["documents"], replies
        self._members = GroupMembers(start["include_paths"], start["plugins"], start["options"])
        self._reader = YamlReader()
        include_again(start["included"])

    def begin(self, step: str) -> None:
        self._reply({"step": step})

    def serve(self, job: Mapping[str, Any]) -> None:
        specs: list[Mapping[str, Any]] = []
        if job["what"] == "task":
            found = check_task(job["spec"], self._documents, self._reader, self.begin)
        elif job["what"] == "group":
            self.begin("group")
            found, specs = self._members.of(job["name"])
        else:
            from lmms_eval.checks.one_model import check_model

            found = check_model(job["spec"], self.begin)
        self._reply({"findings": found, "members": specs})

    def _reply(self, message: Mapping[str, Any]) -> None:
        self._replies.write(orjson.dumps(message, default=str) + b"\n")
        self._replies.flush()


def serve() -> None:
    """Check what comes in until standard input ends."""
    lines, replies = own_pipes()
    start = orjson.loads(lines.get())
    configure_logging(start["verbosity"])
    refuse_connections()
    desk = _Desk(start, replies)
    with contextlib.suppress(BrokenPipeError):  # the parent is gone
        while line := lines.get():
            desk.serve(orjson.loads(line))


if __name__ == "__main__":
    serve()
