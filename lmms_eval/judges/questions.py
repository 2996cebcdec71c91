"""From a question to requests and from replies to a verdict: the rules that runs and scripts share."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.messages import ChatMessages, ChatTextContent
from lmms_eval.api.request import Request, Response, Usage

if TYPE_CHECKING:
    from lmms_eval.api.task import Task

log = logging.getLogger(__name__)
APART = 1000
"""Between the numbers of two askings of a question; attempts count on from there."""


@dataclass(slots=True)
class Interview:
    """One question and the replies to it so far."""

    question: JudgeQuestion
    place: str
    """What is judged: ``task/doc_id``; with the question's name it makes the requests' ids."""
    task: Task
    doc_id: int
    retries: int = 0
    """How often a reply that cannot be read is asked again."""
    replies: list[str] = field(default_factory=list)
    prompt: str = ""
    usage: Usage | None = None
    error: str | None = None

    def request(self) -> Request:
        """The next request; ``build_messages`` notes the prompt's fingerprint."""
        attempt = len(self.replies)
        number = attempt + APART * (self.question.asking - 1)
        return Request(
            id=f"{self.place}/judge/{self.question.name}/{attempt}",
            kind="generate_until",
            task=self.task,
            doc_id=self.doc_id,
            build_messages=self._build,
            generation=dict(self.question.generation),
            repeat=number,
            seed=number,
        )

    def is_over(self, response: Response) -> bool:
        """Take a response in; ``False`` if the question is to be asked again."""
        if response.error is not None:
            self.error = f"{response.error.kind}: {response.error.message}"
            return True
        self.replies.append(response.text or "")
        self.usage = _added(self.usage, response.usage)
        return self.accepts(self.replies[-1]) or len(self.replies) > self.retries

    def accepts(self, text: str) -> bool:
        """Whether the reply can be read; a reader that raises cannot read it."""
        try:
            return bool(self.question.accepts(text))
        except Exception as error:  # noqa: BLE001 - a task's own reader may raise anything on a judge's text
            log.warning("%s: reading the judge's reply raised %s: %s", self.place, type(error).__name__, error)
            return False

    def verdict(self, model: str) -> Verdict:
        text = self.replies[-1] if self.replies else None
        return Verdict(
            name=self.question.name,
            text=text,
            accepted=text is not None and self.accepts(text),
            model=model,
            prompt=self.prompt,
            replies=tuple(self.replies),
            usage=self.usage,
            error=self.error if text is None else None,
            details=dict(self.question.details),
        )

    def _build(self) -> ChatMessages:
        messages = self.question.build_messages()
        self.prompt = prompt_fingerprint(messages)
        return messages


def prompt_fingerprint(messages: ChatMessages) -> str:
    """16 hexadecimal digits over roles, texts and the contents of all media.

    Raises:
        MediaError: a picture, video or sound cannot be read.
    """
    from lmms_eval.media import digest

    found = hashlib.sha256()
    for message in messages.messages:
        found.update(f"\0{message.role}".encode())
        for part in message.content:
            content = part.text if isinstance(part, ChatTextContent) else digest(part.url)
            found.update(f"\1{part.type}\2".encode() + content.encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:16]


def _added(one: Usage | None, other: Usage | None) -> Usage | None:
    if one is None or other is None:
        return one or other
    pairs = zip(one.to_dict().values(), other.to_dict().values(), strict=True)
    return Usage(*(None if a is None and b is None else (a or 0) + (b or 0) for a, b in pairs))
