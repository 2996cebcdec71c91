"""The first requests of a task as a Markdown page with thumbnails.

Texts come from data sets: each stands in a fence of backticks longer than any in it, and names of tasks and files lose
everything that Markdown or HTML could read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.api.messages import (
    ChatAudioContent,
    ChatContent,
    ChatImageContent,
    ChatMessages,
    ChatTextContent,
    ChatVideoContent,
)
from lmms_eval.api.request import Request
from lmms_eval.engine.failures import failure
from lmms_eval.errors import JournalError, MediaError
from lmms_eval.storage.atomic import write_atomically
from lmms_eval.utils.names import sanitize_task_name
from lmms_eval.utils.terminal import printable

SIDE = 512
"""Pixels of the longer side of a thumbnail at most."""
SHOWN_FRAMES = 4
MAX_NAME = 120
"""Characters of a file's name."""
_TICKS = re.compile("`+")
_PLAIN = re.compile(r"[^\w .,:/+-]")


@dataclass(frozen=True, slots=True)
class Page:
    """Writer of one task's page, ``FOLDER/TASK.md`` with pictures beside it."""

    folder: Path
    task: str
    name: str = ""
    """Name of the file, of letters, digits and underscores; without one that of the task."""
    template: Any = None
    """Renders messages as the model's chat template does; ``None``: it is not at hand."""

    @property
    def stem(self) -> str:
        return self.name or sanitize_task_name(self.task)[:MAX_NAME]

    @property
    def path(self) -> Path:
        return self.folder / f"{self.stem}.md"

    def write(self, requests: Sequence[Request]) -> Path:
        """Write the page.

        Raises:
            JournalError: it, or a thumbnail, cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JournalError(f"cannot make the folder {self.folder}: {error.strerror or error}") from error
        lines = [f"# {plain(self.task)}: the first {len(requests)} requests", ""]
        for number, request in enumerate(requests, start=1):
            lines += [f"## {number}. {plain(request.id)}", "", *self._request(number, request)]
        write_atomically(self.path, "\n".join(lines).encode("utf-8", "replace"))
        return self.path

    def _request(self, number: int, request: Request) -> Iterator[str]:
        yield from fenced(json.dumps(dict(request.generation), default=str, ensure_ascii=False), "json")
        try:
            messages = request.build_messages()
        except Exception as error:  # noqa: BLE001 - the task's own functions may raise anything
            yield from fenced(failure("rendering the request", error))
            return
        count = 0
        for message in messages.messages:
            yield from (f"**{message.role}**", "")
            for part in message.content:
                count += 1
                yield from self._part(f"{self.stem}_{number}_{count}", part)
        if request.continuation is not None:
            yield from ("**continuation whose likelihood is asked**", "", *fenced(request.continuation))
        yield from self._rendered(messages)

    def _part(self, stem: str, part: ChatContent) -> Iterator[str]:
        if isinstance(part, ChatTextContent):
            yield from fenced(part.text)
            return
        try:
            if isinstance(part, ChatImageContent):
                yield from self._picture(stem, part.url)
            elif isinstance(part, ChatVideoContent):
                yield from self._video(stem, part)
            else:
                yield from _sound(part)
        except MediaError as error:
            yield from fenced(str(error))

    def _picture(self, stem: str, value: Any) -> Iterator[str]:
        from lmms_eval.media import load_rgb, resolve, shrink

        ref = resolve(value)
        if ref.kind == "url":
            yield from fenced(f"picture at {ref.describe()}")
            return
        image = load_rgb(ref)
        size = image.size
        small = shrink(image, max_side=SIDE)
        path = self.folder / f"{stem}.webp"
        try:
            small.save(path, format="WEBP", quality=80)
        except OSError as error:
            raise JournalError(f"cannot write {path}: {error.strerror or error}") from error
        yield from (f"![picture of {size[0]}x{size[1]}]({path.name})", "")

    def _video(self, stem: str, part: ChatVideoContent) -> Iterator[str]:
        from lmms_eval.models.remote.media import Frames, read_video

        frames: Sequence[Any]
        if isinstance(part.url, list | tuple):
            frames = part.url[:SHOWN_FRAMES]
        else:
            frames = read_video(part, Frames(SHOWN_FRAMES)).images()
        yield from (f"video, {len(frames)} of its frames:", "")
        for number, frame in enumerate(frames):
            yield from self._picture(f"{stem}_{number}", frame)

    def _rendered(self, messages: ChatMessages) -> Iterator[str]:
        if self.template is None:
            return
        try:
            text = self.template(messages)
        except Exception as error:  # noqa: BLE001 - a template is a program of the model's authors
            text = failure("the chat template", error)
        yield from ("**as the chat template renders it**", "", *fenced(text))


def _sound(part: ChatAudioContent) -> Iterator[str]:
    from lmms_eval.media import audio_seconds, resolve

    ref = resolve(part.url)
    told = f"sound at {ref.describe()}" if ref.kind == "url" else f"sound of {audio_seconds(ref):.1f} s"
    yield from fenced(told)


def fenced(text: str, language: str = "") -> list[str]:
    """A block of code that holds the text as it is, control characters escaped."""
    shown = printable(text)
    longest = max((len(ticks) for ticks in _TICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language or 'text'}", shown, fence, ""]


def plain(text: str) -> str:
    """A name as it may stand in a heading."""
    return _PLAIN.sub("_", printable(text))


def chat_template(folder: Path) -> Any:
    """Find the chat template of a model's folder; ``None`` where its tokenizer has none that can be read."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError):
        return None
    if not getattr(tokenizer, "chat_template", None):
        return None
    return lambda messages: tokenizer.apply_chat_template(
        messages.to_hf_messages(), tokenize=False, add_generation_prompt=True
    )
