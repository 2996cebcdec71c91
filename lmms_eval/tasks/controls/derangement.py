"""Each document gets the media of another one: a seeded permutation without a fixed point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import partial

from lmms_eval.engine.plan import draw_place
from lmms_eval.errors import UsageError


def derangement(doc_ids: Sequence[int], seed: int, media: Mapping[int, Hashable]) -> dict[int, int]:
    """Return the donor of each document: never itself, and as rarely as can be one that shows the same media.

    Documents are put in a random order, those of the same media beside each other, and the order is turned by the
    number of the media that most of them share: where that is at most half of them, no document gets media like its
    own; else as few as can be. The order follows from digests of seed and number, so that it depends on no generator.

    Args:
        doc_ids: the documents that are asked.
        seed: of the run.
        media: what a document shows, by document; equal values for the same media.

    Raises:
        UsageError: there are fewer than two documents.
    """
    if len(doc_ids) < 2:
        raise UsageError("one document alone has no other to take media from: ask two documents or more")

    place = partial(draw_place, seed)

    shared = Counter(media[doc_id] for doc_id in doc_ids)
    first: dict[Hashable, bytes] = {}
    for doc_id in sorted(doc_ids, key=place):
        first.setdefault(media[doc_id], place(doc_id))
    order = sorted(doc_ids, key=lambda doc_id: (first[media[doc_id]], place(doc_id)))
    step = max(shared.values()) % len(order) or 1
    return {doc_id: order[(number + step) % len(order)] for number, doc_id in enumerate(order)}
