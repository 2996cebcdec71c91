"""A seeded permutation without a fixed point, which gives each document the media of another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import partial

from lmms_eval.engine.plan import draw_place
from lmms_eval.errors import UsageError


def derangement(doc_ids: Sequence[int], seed: int, media: Mapping[int, Hashable]) -> dict[int, int]:
    """Return the donor of each document: never itself, and as rarely as possible one with the same media.

    Documents are sorted at random, with those of the same media next to each other. The order is then rotated by the
    size of the largest group of equal media. If that group is at most half of the documents, no document gets media
    like its own; otherwise as few as possible do. The order follows from digests of seed and number, so it does not
    depend on a random generator.

    Args:
        doc_ids: the documents of the run.
        seed: seed of the run.
        media: for each document a value that is equal for equal media.

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
