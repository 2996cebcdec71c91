"""Replies of a judge: a journal beside that of the responses, in which they are found again by question.

A reply counts for a question only if the judge, the rendered prompt (pictures by content) and the generation options
are the same; the key says so. A prompt is written once, with the first reply to it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request, Response
from lmms_eval.engine.cache_key import CacheKeys
from lmms_eval.engine.records import RESPONSE, response_from_record, response_record
from lmms_eval.engine.spending import NOTHING, spent_in
from lmms_eval.storage.journal import JournalSet, JournalWriter, Place

PATTERN = "judgements-*.jsonl"


class JudgementStore:
    """The journals of judgements in a folder (``drive.Journal``); this process writes the one of its rank.

    Raises:
        JournalError: the journal cannot be opened.
    """

    def __init__(self, folder: Path, keys: CacheKeys, rank: int = 0) -> None:
        self._keys = keys
        self._lock = threading.Lock()
        self._journals = JournalSet()
        self._known: dict[tuple[str, str], Place] = {}
        self._told: set[str] = set()
        """Fingerprints of the prompts whose messages are in the journals."""
        self._open: dict[str, str] = {}
        """Keys of the requests that are being asked, by id."""
        self.recalled: set[str] = set()
        """Requests that were answered from the journal, by id."""
        self.spent = NOTHING
        """What earlier starts have paid for."""
        self._writer = JournalWriter(folder / f"judgements-{rank}.jsonl")  # first, as in RunStore
        for path in sorted(folder.glob(PATTERN)):
            for place, record in self._journals.load(path, shape=RESPONSE):
                self.spent += spent_in(record)
                if "messages" in record:
                    self._told.add(record.get("prompt", ""))
                if "id" in record and "key" in record and "error" not in record:
                    self._known[record["id"], record["key"]] = place

    @property
    def ids(self) -> set[str]:
        """Requests to which any judge has replied in an earlier start."""
        return {request_id for request_id, _ in self._known}

    def recall(self, request: Request, build_messages: Callable[[], ChatMessages]) -> Response | None:
        """Find the reply that an earlier start has journaled.

        Raises:
            MediaError: a picture, video or sound cannot be read.
            VolatileValue: a generation option or a part of a message has no lasting form.
        """
        key = self._keys.key(request, build_messages())
        place = self._known.get((request.id, key))
        if place is not None:
            self.recalled.add(request.id)
            return response_from_record(self._journals.at(place))
        self._open[request.id] = key
        return None

    def keep(self, response: Response, prompt: str) -> Response:
        """Write a reply. Raises ``JournalError``."""
        key = self._open.pop(response.request_id, "")  # none where the prompt could not be rendered
        record = {**response_record(response, prompt), "key": key}
        if "messages" in record:
            with self._lock:
                if prompt in self._told:
                    del record["messages"]
                self._told.add(prompt)
        self._writer.append(record)
        return response

    def sync(self) -> None:
        self._writer.sync()

    def close(self) -> None:
        self._writer.close()
        self._journals.close()
