"""A judge that repeats recorded replies (``--judge_model replay:FILE``): JSON lines with ``id``, ``prompt``, ``text``.

The journal of judgements of a run (``judgements-0.jsonl``) is such a file; of its lines those count that fit their
checksums. A line that has both keys answers its question only while the prompt is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response
from lmms_eval.engine.fingerprints import content_fingerprint
from lmms_eval.errors import ModelError
from lmms_eval.storage.lines import has_checksums, records_in
from lmms_eval.utils.plain_files import read_plain

TAKE = 32


class RecordedJudge(Model):
    """Repeats the replies in a file.

    Raises:
        ModelError: the file cannot be read, or holds a line of another form.
    """

    concurrency = TAKE

    def __init__(self, path: str) -> None:
        self.path = Path(path).expanduser()
        try:
            data = read_plain(self.path)
        except OSError as error:
            raise ModelError(f"replay: cannot read the judge's replies {path}: {error.strerror or error}") from error
        self._digest = hashlib.sha256(data).hexdigest()
        self._by_id: dict[str, str] = {}
        self._by_both: dict[tuple[str, str], str] = {}
        self._by_prompt: dict[str, list[str]] = {}
        if has_checksums(data):
            for number, row in enumerate(records_in(data, self.path), 1):
                self._add(row, number)
            return
        for number, line in enumerate(data.splitlines(), 1):
            if line.strip():
                self._add(self._row(line, number), number)

    def prepare(self, request: Request) -> Request:
        return request.with_payload(content_fingerprint(request.build_messages()), 0)

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(TAKE):
            for request in requests:
                text = self._by_both.get((request.id, request.payload), self._by_id.get(request.id))
                if text is None and (same := self._by_prompt.get(request.payload)):
                    text = same[min(request.repeat, len(same) - 1)]
                if text is None:
                    message = f"no reply to {request.id} (prompt {request.payload}) in {self.path.name}"
                    yield Response.failure(request.id, "bad_request", message)
                else:
                    yield Response(request.id, text=text, finish_reason="stop")

    def identity(self) -> Mapping[str, Any]:
        return {"file": self._digest}

    def _row(self, line: bytes, number: int) -> Any:
        try:
            return json.loads(line.decode("utf-8", "replace"))
        except ValueError as error:
            raise ModelError(f"replay: {self.path} line {number} is no recorded reply: {error!r}") from error

    def _add(self, row: Any, number: int) -> None:
        try:
            if "error" in row:
                return
            name, prompt, text = row.get("id"), row.get("prompt"), row["text"]
        except (KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"replay: {self.path} line {number} is no recorded reply: {error!r}") from error
        if not isinstance(text, str) or not (name or prompt):
            raise ModelError(f"replay: {self.path} line {number} needs text, and id or prompt")
        if name and prompt:
            self._by_both[name, prompt] = text
        elif name:
            self._by_id[name] = text
        if prompt:
            self._by_prompt.setdefault(prompt, []).append(text)
