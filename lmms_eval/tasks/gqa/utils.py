"""GQA: short answers about relations in photographs. Questions and pictures are two parts of the data set."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from lmms_eval.errors import ItemError
from lmms_eval.tasks.data.documents import Documents
from lmms_eval.tasks.data.splits import DataRequest, open_data

_DATA_SET, _PICTURES, _SPLIT = "lmms-lab-encoder/GQA", "testdev_balanced_images", "testdev"


def doc_to_visual(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> list[Any]:
    """Return the picture that the question is about as RGB.

    Raises:
        ItemError: the data set has no picture of that id.
    """
    if doc.get("image") is not None:
        return [doc["image"].convert("RGB")]
    found = _pictures((lmms_eval_specific_kwargs or {}).get("data_root"))
    if doc["imageId"] not in found.places:
        raise ItemError(f"gqa: there is no picture {doc['imageId']!r} in {_DATA_SET}, configuration {_PICTURES}")
    return [found.documents[found.places[doc["imageId"]]]["image"].convert("RGB")]


class _Pictures:
    """Documents of the part that holds the pictures, and their places by id; each picture is decoded when asked for."""

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self.places = {documents.text_view(number)["id"]: number for number in range(len(documents))}


@functools.lru_cache(maxsize=4)
def _pictures(data_root: str | None) -> _Pictures:
    request = DataRequest(_DATA_SET, _PICTURES, {"token": True}, "gqa, pictures", data_root, task="gqa")
    return _Pictures(open_data(request, _SPLIT).documents(_SPLIT))
