"""Changes that a control makes in the messages of a document, and in the media that a class plugin asks for."""

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
"""Marks in a text for each of which a model expects a picture, video or sound. Numbered ones are words to it."""


class Change(abc.ABC):
    """A change of the messages of one document."""

    keeps_marks: ClassVar[bool] = True
    """A mark in a text still has its picture."""

    @abc.abstractmethod
    def parts(self, media: Sequence[Part]) -> Sequence[Part | None]:
        """Return what takes the place of each of the media of a conversation, in order; ``None``: nothing does."""

    def turns(self, turns: Sequence[Turn]) -> list[dict[str, Any]]:
        """Return messages with other media."""
        changed = iter(self.parts(media_of(turns)))
        made = []
        for turn in turns:
            content = [self._text(part) if part["type"] == "text" else next(changed) for part in turn["content"]]
            kept = [dict(part) for part in content if part is not None]
            made.append({**turn, "content": kept or [{"type": "text", "text": ""}]})
        return made

    def visuals(self, visuals: Sequence[Any]) -> list[Any]:
        """Return the media of the simple interface, each as ``doc_to_visual`` gives such a one."""
        changed = self.parts([visual_to_content(visual) for visual in visuals])
        return [part["url"] for part in changed if part is not None]

    def text(self, text: str) -> str:
        """Return a prompt's text without marks that have no picture any more."""
        if not self.keeps_marks:
            for mark in MARKS:
                text = text.replace(mark, "")
        return text

    def _text(self, part: Part) -> Part:
        return part if self.keeps_marks else {**part, "text": self.text(part["text"])}


class NoMedia(Change):
    """All media are left out."""

    keeps_marks: ClassVar[bool] = False

    def parts(self, media: Sequence[Part]) -> Sequence[Part | None]:
        return [None] * len(media)


@dataclass(frozen=True)
class ListedChoices(NoMedia):
    """The choices in our words, and nothing else."""

    choices: Callable[[], Sequence[str]]

    def turns(self, turns: Sequence[Turn]) -> list[dict[str, Any]]:  # noqa: ARG002 - nothing of them is kept
        return [{"role": "user", "content": [{"type": "text", "text": self.text("")}]}]

    def text(self, text: str) -> str:  # noqa: ARG002
        return "Choose one of these options and answer with it alone:\n" + "\n".join(self.choices())


class BlankMedia(Change):
    """Grey pictures and videos of the same size, silence of the same length."""

    def parts(self, media: Sequence[Part]) -> Sequence[Part | None]:
        from lmms_eval.media.blank import blank_audio, blank_image, blank_video

        made: dict[str, Callable[[Any], Any]] = {"image": blank_image, "video": blank_video, "audio": blank_audio}
        return [{**part, "url": made[part["type"]](part["url"])} for part in media]


@dataclass(frozen=True)
class OtherMedia(Change):
    """The media of another document, in order.

    Where that has fewer they come again from the first; where it has more the rest is left out. So the number of media
    stays what the text says.
    """

    donors: Callable[[], Iterable[Sequence[Part]]]
    """The media of the documents that may give theirs; the first that has any does."""

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
