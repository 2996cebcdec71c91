"""Which documents belong together: by a column that the task names, or by their first picture, video or sound."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

MediaKey = Literal["sent_media", "input_media"]
"""Key of a sample with its media: those that were sent, or the document's own pictures."""


def label(value: Any) -> str | None:
    """Return the text of a cluster or metadata value; ``None`` if it is empty or not a plain value."""
    if value is None or isinstance(value, Mapping | list) or value == "":
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def cluster_of(key: str, values: Collection[Any], doc: Any) -> str | None:
    """Find a document's cluster in its metrics' values, else in its own fields."""
    for value in (*values, doc):
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
    return next((str(first[key]) for key in ("sha256", "path", "url", "name") if first.get(key)), None)


def own_cluster(doc_id: Any) -> str:
    """Return the name of the cluster of a document that shares none."""
    return f"document {doc_id}"
