"""Tokens and media that a run has paid for: what its journals hold, and what a start adds to that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval.api.request import SentMedia, Usage
from lmms_eval.utils.prices import Spending

NOTHING = Spending()


@dataclass(frozen=True, slots=True)
class RunSpending:
    """Sums over all starts of a run."""

    model: Spending = NOTHING
    judge: Spending = NOTHING


def media_spent(media: Sequence[SentMedia]) -> Spending:
    """Count pictures, the frames of videos among them, and seconds of sound, and what of them is not known."""
    sounds = [one.seconds for one in media if one.type == "audio"]
    videos = [len(one.frames) for one in media if one.type == "video"]
    return Spending(
        pictures=sum(videos) + sum(one.type == "image" for one in media),
        audio_seconds=sum(seconds or 0.0 for seconds in sounds),
        unmeasured=sounds.count(None) + videos.count(0),
    )


def spent_in(record: Mapping[str, Any]) -> Spending:
    """Read what the response of a journal's record has cost; nothing of one that came out of the response cache."""
    if record.get("cached") or "id" not in record:
        return NOTHING
    usage = Usage(*record.get("usage", ())[:3])
    read, written, thought = (count or 0 for count in usage.to_dict().values())
    media = [SentMedia.from_dict(medium) for medium in record.get("media", ())]
    untold = not usage.is_known and "error" not in record
    return Spending(read, written, thought, untold=int(untold)) + media_spent(media)


def spending_from(sums: Mapping[str, Any]) -> Spending:
    """Undo ``dataclasses.asdict``; of an empty mapping nothing was spent."""
    return Spending(**sums)
