"""What a judge has said in this run: a journal beside that of the responses, found again by question.

A reply counts for a question only if the judge, the rendered prompt (pictures by content) and the generation options
are the same; the key says so.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request, Response
from lmms_eval.engine.cache_key import CacheKeys
from lmms_eval.engine.records import response_from_record, response_record
from lmms_eval.storage.journal import JournalReader, JournalWriter, read_journal

PATTERN = "judgements-*.jsonl"


@dataclass(frozen=True, slots=True)
class _Place:
    file: int
    offset: int


class JudgementStore:
    """The journals of judgements in a run's folder; this process writes the one of its rank.

    Raises:
        JournalError: the journal cannot be opened.
    """

    def __init__(self, folder: Path, keys: CacheKeys, rank: int = 0) -> None:
        self._keys = keys
        self._lock = threading.Lock()
        self._readers: list[JournalReader] = []
        self._known: dict[tuple[str, str], _Place] = {}
        self._writer = JournalWriter(folder / f"judgements-{rank}.jsonl")  # first, as in RunStore
        for path in sorted(folder.glob(PATTERN)):
            self._load(path)

    def key(self, request: Request, messages: ChatMessages) -> str:
        """Raises ``MediaError`` or ``VolatileValue`` (``CacheKeys.key``)."""
        return self._keys.key(request, messages)

    def known(self, request_id: str, key: str) -> Response | None:
        """The reply that an earlier start has journaled."""
        place = self._known.get((request_id, key))
        return None if place is None else response_from_record(self._readers[place.file].at(place.offset))

    def add(self, response: Response, prompt: str, key: str) -> None:
        """Raises ``JournalError``."""
        self._writer.append({**response_record(response, prompt), "key": key})

    def sync(self) -> None:
        self._writer.sync()

    def close(self) -> None:
        self._writer.close()
        for reader in self._readers:
            reader.close()

    def _load(self, path: Path) -> None:
        self._readers.append(JournalReader(path))
        for entry in read_journal(path):
            record = entry.record
            if "id" in record and "key" in record and "error" not in record:
                self._known[record["id"], record["key"]] = _Place(len(self._readers) - 1, entry.offset)
