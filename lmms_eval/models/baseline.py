"""Models without weights: the reference answers, a random choice, or a constant text.

They check a task and its scoring from end to end, and give the score of chance.
"""

from __future__ import annotations

import ast
import contextlib
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval import media
from lmms_eval.api.generation import ALL_LIMITS
from lmms_eval.api.messages import ChatAudioContent, ChatImageContent, ChatMessages, ChatVideoContent
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.errors import ModelError
from lmms_eval.models.argument_names import IGNORED_LOCALLY
from lmms_eval.models.remote.media import Frames, is_listed, read_video
from lmms_eval.models.task_access import gold_answer_of, offered_options, target_of

FRAMES_READ = 8
"""Frames that are read from a video."""
TAKE = 64
OTHER_CHOICE = -10.0
COUNTED = ("pictures", "videos", "frames", "sounds", "bytes", "seconds")
"""What ``Dummy`` counts of the media that it reads. Seconds are summed over the preparation threads."""


def open_media(messages: ChatMessages) -> None:
    """Decode all pictures and sounds, and some frames of each video. Raises ``MediaError`` for an unusable medium."""
    for message in messages.messages:
        for part in message.content:
            if isinstance(part, ChatImageContent):
                media.load_rgb(part.url)
            elif isinstance(part, ChatAudioContent):
                media.load_audio(part.url)
            elif isinstance(part, ChatVideoContent):
                if is_listed(part.url):
                    for frame in part.url:
                        media.load_rgb(frame)
                else:
                    read_video(part, Frames(FRAMES_READ))


class Baseline(Model):
    """``--model baseline --model_args strategy=gold``.

    Args:
        strategy: ``gold`` answers with the task's reference answers; ``random_choice`` draws one of the options with
            the request's seed; ``constant`` always answers with ``text``.
        text: the constant answer.
        options: answers that ``random_choice`` draws from, separated by ``|``. The default is the task's choices, or
            the letters of the option lines (``A. ...``, ``(A) ...``, ``A: ...``) in the prompt.
        no_media: ``gold`` builds every prompt and opens its pictures, videos and sounds, so that a full score shows
            that the whole task works. This option skips that (``--no_media``).
    """

    kinds: frozenset[RequestKind] = frozenset(
        {"generate_until", "loglikelihood", "loglikelihood_rolling", "generate_visual_cot"}
    )
    concurrency = TAKE
    reads_documents = True

    def __init__(
        self, strategy: str = "gold", text: str = "A", options: str | Sequence[str] = (), no_media: bool = False
    ) -> None:
        strategies = {"gold": self._gold, "random_choice": self._random_choice, "constant": self._constant}
        if strategy not in strategies:
            known = ", ".join(strategies)
            raise ModelError(f"baseline has no strategy {strategy!r} (--model_args strategy=...); it has {known}")
        self.strategy = strategy
        self._answer = strategies[strategy]
        self._opens_media = self.opens_media({"strategy": strategy, "no_media": no_media})
        self.text = str(text)
        self.options = tuple(options.split("|") if isinstance(options, str) and options else options)

    @classmethod
    def opens_media(cls, model_args: Mapping[str, Any]) -> bool:
        """Return true for ``gold``."""
        return model_args.get("strategy", "gold") == "gold" and not model_args.get("no_media")

    @property
    def media_limits(self) -> frozenset[str]:
        """All: its answers depend on no medium."""
        return ALL_LIMITS

    def prepare(self, request: Request) -> Request:
        """Check for ``gold`` that the prompt and its media could be sent."""
        if self._opens_media:
            open_media(request.build_messages())
        return request

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(TAKE):
            for request in requests:
                yield self._answer(request)

    def sent_with(self, request: Request) -> Mapping[str, Any]:  # noqa: ARG002
        """Return nothing, as no model is asked."""
        return {}

    def identity(self) -> Mapping[str, Any]:
        return {"strategy": self.strategy, "text": self.text, "options": list(self.options)}

    def _gold(self, request: Request) -> Response:
        if not request.is_likelihood:
            return _text_response(request, gold_answer_of(request.task, request.doc_id))
        is_gold = request.task.output_type in ("loglikelihood", "loglikelihood_rolling") or is_gold_choice(request)
        return Response(request.id, loglikelihood=0.0 if is_gold else OTHER_CHOICE, is_greedy=is_gold)

    def _random_choice(self, request: Request) -> Response:
        generator = random.Random(request.seed)
        if request.is_likelihood:
            return Response(request.id, loglikelihood=-generator.random(), is_greedy=False)
        options = self.options or offered_options(request.task, request.doc_id, request.context)
        if not options:
            message = "random_choice found no options in the prompt; give --model_args options=A|B|C|D"
            return Response.failure(request.id, "bad_request", message)
        return _text_response(request, generator.choice(options))

    def _constant(self, request: Request) -> Response:
        if request.is_likelihood:
            is_it = (request.continuation or "").strip() == self.text
            return Response(request.id, loglikelihood=0.0 if is_it else OTHER_CHOICE, is_greedy=is_it)
        return _text_response(request, self.text)


def is_gold_choice(request: Request) -> bool:
    """Return whether the choice of the request is a reference answer, which is given by number or as text.

    A text of digits is the number of a choice, as in all tasks with choices.
    """
    target = target_of(request.task, request.doc_id)
    if isinstance(target, str) and target.startswith("[") and target.endswith("]"):
        with contextlib.suppress(ValueError, SyntaxError):
            target = ast.literal_eval(target)
    answers = [str(answer).strip() for answer in (target if isinstance(target, list | tuple) else [target])]
    asked = (request.continuation or "").strip()
    return any(int(text) == request.index if text.isdecimal() else text == asked for text in answers)


def _text_response(request: Request, text: str) -> Response:
    return Response(request.id, text=text, finish_reason="stop")


class Dummy(Baseline):
    """``--model dummy --model_args response=A``.

    Args:
        response: the answer to every request.
        read_bytes: read the files that the prompts name, and count their bytes.
        decode_num_frames: frames to decode of every video; pictures and sounds are decoded too. 0 decodes nothing.
        decode_fps: frames per second to decode, at most ``decode_num_frames`` if both are given.
        metrics_output_path: JSON file for the counts, which are also under ``model`` in the results file.
    """

    ignored_arguments = IGNORED_LOCALLY

    def __init__(
        self,
        response: str = "A",
        read_bytes: bool = False,
        decode_num_frames: int = 0,
        decode_fps: float | None = None,
        metrics_output_path: str | None = None,
    ) -> None:
        if decode_num_frames < 0 or (decode_fps is not None and decode_fps <= 0):
            raise ModelError("dummy: decode_num_frames must be at least 0 and decode_fps above 0 (--model_args)")
        super().__init__("constant", text=response, no_media=True)
        self.read_bytes = read_bytes
        self.decode_num_frames, self.decode_fps = decode_num_frames, decode_fps
        self._output = Path(metrics_output_path).expanduser() if metrics_output_path else None
        self._read: dict[str, float] = {**dict.fromkeys(COUNTED, 0), "seconds": 0.0}
        self._lock = threading.Lock()

    def prepare(self, request: Request) -> Request:
        """Read the media of the prompt, as far as the arguments require it. Raises ``MediaError``."""
        decodes = bool(self.decode_num_frames or self.decode_fps)
        if not self.read_bytes and not decodes:
            return request
        messages = request.build_messages()
        started, read = time.monotonic(), Counter[str]()
        for message in messages.messages:
            for part in message.content:
                if part.type == "text":
                    continue
                read["bytes"] += _file_size(part.url) if self.read_bytes else 0
                if decodes:
                    if part.type == "image":
                        media.load_rgb(part.url)
                        read["pictures"] += 1
                    elif part.type == "audio":
                        media.load_audio(part.url)
                        read["sounds"] += 1
                    else:
                        read["videos"] += 1
                        read["frames"] += self._frames(part)
        with self._lock:
            self._read["seconds"] += time.monotonic() - started
            for name, count in read.items():
                self._read[name] += count
        return request

    def describe(self) -> Mapping[str, Any]:
        """Return the counts of what was read."""
        return dict(self._read) if self.read_bytes or self.decode_num_frames or self.decode_fps else {}

    def close(self) -> None:
        """Write ``metrics_output_path``. Raises ``ModelError`` if that fails."""
        if self._output is None:
            return
        try:
            self._output.parent.mkdir(parents=True, exist_ok=True)
            self._output.write_text(json.dumps(self._read, indent=2), "utf-8")
        except OSError as error:
            raise ModelError(f"dummy: {self._output} cannot be written: {error.strerror or error}") from error

    def _frames(self, part: ChatVideoContent) -> int:
        if is_listed(part.url):
            return len([media.load_rgb(frame) for frame in part.url[: self.decode_num_frames or None]])
        sampling = media.Sampling(count=self.decode_num_frames or None, fps=self.decode_fps)
        return len(list(media.read_frames(part.url, sampling).images()))


def _file_size(value: Any) -> int:
    """Read the local file that a part names and return its size; 0 if it is not a local file."""
    if not isinstance(value, str | Path) or str(value).startswith(("http://", "https://", "data:")):
        return 0
    path = Path(str(value).removeprefix("file://")).expanduser()
    return len(path.read_bytes()) if path.is_file() else 0
