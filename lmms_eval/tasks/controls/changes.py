"""Changes that controls make to the messages of a document and to the media that class plugins request."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lmms_eval.api.messages import visual_to_content
from lmms_eval.errors import MediaError

Turn = Mapping[str, Any]
Part = Mapping[str, Any]
MARKS = ("<image>", "<video>", "<audio>")
"""Marks in a text that make a model expect a picture, video or sound. Numbered marks are ordinary text."""


class Change(abc.ABC):
    """A change to the messages of one document."""

    keeps_marks: ClassVar[bool] = True
    """Whether a mark in a text still has its medium."""

    @abc.abstractmethod
    def parts(self, media: Sequence[Part]) -> Sequence[Part | None]:
        """Return the replacement of each medium of a conversation, in order; ``None`` removes the medium."""

    def turns(self, turns: Sequence[Turn]) -> list[dict[str, Any]]:
        """Return messages with other media."""
        changed = iter(self.parts(media_of(turns)))
        made = []
        for turn in turns:
            content = [
                next(changed) if part["type"] != "text" else {**part, "text": self.text(part["text"])}
                for part in turn["content"]
            ]
            kept = [dict(part) for part in content if part is not None]
            made.append({**turn, "content": kept or [{"type": "text", "text": ""}]})
        return made

    def visuals(self, visuals: Sequence[Any]) -> list[Any]:
        """Return the changed media of the simple interface, in the forms that ``doc_to_visual`` returns."""
        changed = self.parts([visual_to_content(visual) for visual in visuals])
        return [part["url"] for part in changed if part is not None]

    def text(self, text: str) -> str:
        """Return a prompt's text without the marks whose media are removed."""
        if not self.keeps_marks:
            for mark in MARKS:
                text = text.replace(mark, "")
        return text


class NoMedia(Change):
    """Removes all media."""

    keeps_marks: ClassVar[bool] = False

    def parts(self, media: Sequence[Part]) -> Sequence[Part | None]:
        return [None] * len(media)


@dataclass(frozen=True)
class ListedChoices(NoMedia):
    """Shows only the choices, in our wording."""

    choices: Callable[[], Sequence[str]]

    def turns(self, turns: Sequence[Turn]) -> list[dict[str, Any]]:  # noqa: ARG002 - nothing of them is kept
        return [{"role": "user", "content": [{"type": "text", "text": self.text("")}]}]

    def text(self, text: str) -> str:  # noqa: ARG002
        return "Choose one of these options and answer with it alone:\n" + "\n".join(self.choices())


class BlankMedia(Change):
    """Replaces media by grey pictures and videos of the same size, and silence of the same length."""

    def parts(self, media: Sequence[Part]) -> Sequence[Part | None]:
        from lmms_eval.media.blank import blank_audio, blank_image, blank_video

        made: dict[str, Callable[[Any], Any]] = {"image": blank_image, "video": blank_video, "audio": blank_audio}
        return [{**part, "url": made[part["type"]](part["url"])} for part in media]


@dataclass(frozen=True)
class OtherMedia(Change):
    """Replaces media by those of another document, in order.

    If the other document has fewer media, they are repeated from the first; surplus media are dropped. So the number of
    media still matches the text.
    """

    donors: Callable[[], Iterable[Sequence[Part]]]
    """Yields the media of possible donors; the first donor with media is used."""

    def parts(self, media: Sequence[Part]) -> Sequence[Part | None]:
        if not media:
            return ()
        given = next((parts for parts in self.donors() if parts), None)
        if given is None:
            raise MediaError("shuffled-media: no other document that is asked has media")
        return [given[number % len(given)] for number in range(len(media))]


def media_of(turns: Sequence[Turn]) -> list[Part]:
    """List the media of messages in order."""
    return [part for turn in turns for part in turn["content"] if part["type"] != "text"]
