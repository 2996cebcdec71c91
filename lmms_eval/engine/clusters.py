"""Finds the clusters of a task's documents: questions about one picture or video are not independent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

from msgspec import Struct, field

MediaKey = Literal["sent_media", "input_media"]
"""Key of a sample with its media: those that were sent, or the document's own pictures."""
_KINDS = {"image": "pictures", "video": "videos", "audio": "sounds"}


class Clusters(Struct, frozen=True):
    """The clusters of a task's scored documents."""

    by: str = "none"
    """``column NAME``, ``first medium``, or ``none`` if no two documents share a cluster."""
    count: int = 0
    documents: int = 0
    names: Mapping[int, str] = field(default_factory=dict)
    """Cluster by document; empty if no two documents share one."""
    media: MediaKey | None = None
    """Key of the samples whose first medium is the cluster."""
    noun: str = "clusters"
    absent_key: str = ""
    """The task's ``cluster_key``, if no document has it."""

    def of(self, doc_ids: Sequence[int]) -> list[str] | None:
        """Return the cluster of each of these documents; ``None`` if they are independent."""
        return [self.names.get(doc_id) or own_cluster(doc_id) for doc_id in doc_ids] if self.names else None

    def entry(self) -> dict[str, Any]:
        """Return the task's entry in the results file."""
        found: dict[str, Any] = {"by": self.by, "count": self.count, "documents": self.documents}
        found |= {"effective": self.effective} if self.names else {}
        return found if self.media is None else {**found, "media": self.media}

    @property
    def effective(self) -> float:
        """The number of clusters of one size that allow as much certainty at most, (Σ m)² / Σ m²."""
        sizes = Counter(self.names.values())
        alone = self.documents - sizes.total()  # documents without a name are their own clusters
        return self.documents**2 / (math.fsum(size**2 for size in sizes.values()) + alone) if self.documents else 0.0

    def described(self) -> str:
        """Return a text such as ``812 pictures (2,400 documents)``; empty without clusters."""
        return f"{self.count:,} {self.noun} ({self.documents:,} documents)" if self.names else ""


NO_CLUSTERS = Clusters()


class ClusterFinder:
    """Collects what identifies the clusters of a task's documents, record by record.

    ``cluster_key`` names a column of the documents, or a field of a metric's value. Without one, documents with the
    same first medium form a cluster. The media are those that were sent. They are the document's own pictures with
    ``own_only``, since examples precede the question or a control changed its media, or if that gives fewer clusters: a
    task may draw on a picture, or crop it. A document without a medium or a value is its own cluster.
    """

    def __init__(self, cluster_key: str | None, own_only: bool) -> None:
        self._key, self._own_only = cluster_key, own_only
        self._is_there = bytearray()
        """1 for each document, by number."""
        self._by_column: dict[int, str] = {}
        self._sent: dict[int, str] = {}
        self._own: dict[int, str] = {}
        self._kinds: Counter[str] = Counter()

    def add(self, record: Mapping[str, Any]) -> None:
        """Add the journal's record of a scored document."""
        values = [value for score in record["scores"] for value in score["metrics"].values()]
        sent: Sequence[Any] = next((answer["media"] for answer in record["answers"] if answer.get("media")), ())
        self.note(record["doc_id"], [*values, record.get("doc")], sent, record.get("media"))

    def note(self, doc_id: int, values: Collection[Any], sent: Any, own: Any) -> None:
        """Add a scored document, or a further line of it.

        Args:
            doc_id: its number.
            values: where ``cluster_key`` may be: the values of its metrics, and its fields.
            sent: the media that were sent, as in ``sent_media``.
            own: its own pictures, as in ``input_media``.
        """
        if doc_id >= len(self._is_there):
            self._is_there.extend(bytes(doc_id + 1 - len(self._is_there)))
        self._is_there[doc_id] = 1
        if self._key and (found := cluster_of(self._key, values)) is not None:
            self._by_column[doc_id] = found
        if self._by_column:
            return
        if (found := first_medium(sent)) is not None:
            self._sent[doc_id] = _short(found)
            self._kinds[str(sent[0].get("type", "")) if isinstance(sent[0], Mapping) else ""] += 1
        if (found := first_medium(own)) is not None:
            self._own[doc_id] = _short(found)

    def forget(self, doc_id: int) -> None:
        """Forget a document, before it is added again."""
        if doc_id < len(self._is_there):
            self._is_there[doc_id] = 0
        for names in (self._by_column, self._sent, self._own):
            names.pop(doc_id, None)

    def clusters(self) -> Clusters:
        """Return the clusters of all documents added."""
        if self._by_column:
            return self._made(f"column {self._key}", self._by_column, f"clusters by {self._key}")
        absent, sent = self._key or "", {} if self._own_only else self._sent
        is_sent = self._count(sent) <= self._count(self._own)
        names, documents = sent if is_sent else self._own, self._is_there.count(1)
        if self._count(names) == documents:
            return Clusters(count=documents, documents=documents, absent_key=absent)
        kinds = [_KINDS.get(kind, "media") for kind in self._kinds] if is_sent else ["pictures"]
        noun = kinds[0] if len(kinds) == 1 else "media"
        return self._made("first medium", names, noun, "sent_media" if is_sent else "input_media", absent)

    def _count(self, names: Mapping[int, str]) -> int:
        """Return the number of clusters by these names. A document without one is its own cluster."""
        return len(set(names.values())) + self._is_there.count(1) - len(names)

    def _made(
        self, by: str, names: Mapping[int, str], noun: str, media: MediaKey | None = None, absent_key: str = ""
    ) -> Clusters:
        count, documents = self._count(names), self._is_there.count(1)
        return Clusters(by, count, documents, names if count < documents else {}, media, noun, absent_key)


def _short(identity: str) -> str:
    """Return a digest of a few bytes in place of a long name, since memory holds one for each document."""
    return blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def label(value: Any) -> str | None:
    """Return the text of a cluster or metadata value; ``None`` if it is empty or not a plain value."""
    if value is None or isinstance(value, Mapping | list) or value == "":
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def cluster_of(key: str, values: Iterable[Any]) -> str | None:
    """Find a document's cluster in its metrics' values, else in its own fields, which come last."""
    for value in values:
        if isinstance(value, Mapping) and value.get(key) is not None:
            return label(value[key])
    return None


def first_medium(media: Any) -> str | None:
    """Return what identifies the first of a sample's media: its digest, else its path, address or name.

    ``media`` is the content of ``sent_media`` or ``input_media``. Nothing is opened or hashed.
    """
    first = media[0] if isinstance(media, list | tuple) and media else None
    if not isinstance(first, Mapping):
        return label(first)
    if first.get("origin"):  # recorded only with --log_media, on which clusters must not depend
        return None
    return next((str(first[key]) for key in ("sha256", "path", "url", "name") if first.get(key)), None)


def own_cluster(doc_id: Any) -> str:
    """Return the name of the cluster of a document that shares none."""
    return f"document {doc_id}"
