"""Request bodies: messages with their media as JSON. This runs in preparation threads."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from lmms_eval.api.generation import TEMPLATE_OPTIONS, TakenOptions
from lmms_eval.api.messages import ChatAudioContent, ChatImageContent, ChatTextContent, ChatVideoContent
from lmms_eval.api.request import Request, RequestKind
from lmms_eval.errors import MediaError, ModelError
from lmms_eval.models.argument_names import read_system_prompt
from lmms_eval.models.openai.arguments import ChatArguments, Endpoint
from lmms_eval.models.openai.responses import map_responses_generation, responses_body
from lmms_eval.models.registry import is_vendor
from lmms_eval.models.remote.arguments import ANSWER_ARGUMENTS
from lmms_eval.models.remote.errors import AttemptError, error_in_body, shorten
from lmms_eval.models.remote.generation import Dialect, local_stops, map_generation, taken_by
from lmms_eval.models.remote.media import SentForm, clean, read_sound, read_video
from lmms_eval.models.remote.model import RemoteModel
from lmms_eval.models.remote.reply import Reply, decode_body, read_finish, read_tokens, served_model

if TYPE_CHECKING:
    from lmms_eval.media.encode import WireOptions
    from lmms_eval.models.remote.asking import RequestExchange
    from lmms_eval.models.tools.toolbox import ToolServer

log = logging.getLogger(__name__)
AUDIO_FORMATS = ("wav", "mp3")
"""The formats of ``input_audio`` in the protocol. Others are sent as wav."""
PROCESSOR_OPTIONS = "mm_processor_kwargs"
"""The field of vLLM's server for options of the model's processor."""
MOST_KNOWN = 256
"""Maximum number of cached translations of generation options."""
CHAT_ANSWER_ARGUMENTS = (
    *ANSWER_ARGUMENTS, "reasoning_model", "pass_video_url", "message_format", "is_qwen3_vl", "enable_thinking_kwarg",
    "extra_body",
)  # fmt: skip
"""Arguments for chat completions that can change an answer."""


def completion_body(model: str, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Build the body from messages for chat completions. Raises ``MediaError`` if the messages contain media."""
    parts = [part for message in messages for part in message["content"]]
    if any(part["type"] != "text" for part in parts):
        raise MediaError("api=completions sends texts alone, and the request has a picture, video or sound")
    texts = ["\n".join(part["text"] for part in message["content"]) for message in messages]
    return {"model": model, "prompt": "\n\n".join(texts), **fields}


def parse_completion(raw: bytes, url: str) -> Reply:
    """Read a completion of status 200. Raises ``AttemptError`` if it is malformed, or contains an error."""
    body, choice = read_choice(raw, url)
    text = choice.get("text")
    if not isinstance(text, str):
        raise AttemptError("malformed", f"{url} sent no completion: a choice without text")
    finish = read_finish(choice, url)
    usage = read_tokens(body.get("usage"), "prompt_tokens", "completion_tokens")
    return Reply(text, finish, usage, model=served_model(body))


def read_choice(raw: bytes, url: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Read the body and its first choice. Raises ``AttemptError`` as ``parse_completion`` does."""
    try:
        body = decode_body(raw)
    except orjson.JSONDecodeError as error:
        shown = shorten(raw[:400].decode("utf-8", "replace"))
        raise AttemptError("malformed", f"{url} sent no JSON ({error}): {shown}") from error
    if isinstance(body, dict) and body.get("error"):
        raise error_in_body(body, raw, url)
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise AttemptError("malformed", f"{url} sent no completion: no choices")
    return body, choices[0]


class BodyBuilder:
    """Converts requests to bodies. Thread-safe."""

    def __init__(self, arguments: ChatArguments, endpoint: Endpoint) -> None:
        self.dialect = Dialect(
            arguments.max_new_tokens,
            arguments.is_reasoning,
            endpoint.is_public,
            is_responses=arguments.api == "responses",
            is_plain=arguments.api == "completions",
            reasoning_effort=arguments.reasoning_effort,
            forwards=not (endpoint.is_public or is_vendor(endpoint.shown)),
        )
        self.system_prompt = read_system_prompt(arguments.system_prompt)
        self.model = arguments.model
        self.tools: Sequence[Mapping[str, Any]] = ()
        """Tools that are offered in every request for a text."""
        self.leaves_stops_out: Callable[[], bool] = lambda: False
        """Whether to leave out stop strings."""
        self.note_ignored: Callable[[Iterable[str]], None] = lambda _: None
        """Called with the ignored options of a request."""
        self._is_plain = arguments.api == "completions"
        self._extra = dict(arguments.extra_body)
        switch = arguments.enable_thinking_kwarg
        if switch is not None:
            name = switch if isinstance(switch, str) else "enable_thinking"
            given = self._extra.get(TEMPLATE_OPTIONS)
            template = dict(given) if isinstance(given, Mapping) else {}
            self._extra[TEMPLATE_OPTIONS] = {**template, name: switch is not False}
        self._form = SentForm(arguments.frames, arguments.wire_options(endpoint.takes_webp))
        self._pass_video_url, self._timestamps = arguments.pass_video_url, arguments.timestamps
        self._with_sound = arguments.use_audio_in_video
        if self._with_sound and self._pass_video_url:  # the server opens the videos
            given = self._extra.get(PROCESSOR_OPTIONS)
            options = dict(given) if isinstance(given, Mapping) else {}
            self._extra[PROCESSOR_OPTIONS] = {**options, "use_audio_in_video": True}
        self._known: dict[bytes, dict[str, Any]] = {}
        """Cached fields by generation options."""
        self._noted: set[str] = set()

    def build(self, request: Request) -> bytes:
        """Return the body of a request as JSON. Raises ``MediaError`` if a picture, video or sound cannot be read."""
        return orjson.dumps(self.body(request), option=orjson.OPT_NON_STR_KEYS)

    def body(self, request: Request) -> dict[str, Any]:
        """Return the body of a request. Raises ``MediaError`` if a picture, video or sound cannot be read."""
        chat = request.build_messages()
        form = self._form if request.media is None else self._form.limited(request.media)
        messages = [
            {"role": message.role, "content": [item for part in message.content for item in self._parts(part, form)]}
            for message in chat.messages
        ]
        if self.system_prompt:
            rest = messages[1:] if messages and messages[0]["role"] == "system" else messages
            messages = [{"role": "system", "content": [_text(self.system_prompt)]}, *rest]
        fields = self._generation_fields(request)
        if self.leaves_stops_out():
            fields = {name: value for name, value in fields.items() if name != "stop"}
        if self.dialect.is_responses:
            return responses_body(self.model, messages, fields)
        if self._is_plain:
            return completion_body(self.model, messages, fields)
        if chat.is_plain:
            self._note(
                "prompts that are plain texts are sent as messages of the user: give --apply_chat_template to send "
                "conversations, or api=completions to have them completed"
            )
        if messages and messages[-1]["role"] == "assistant":
            fields = {**fields, **self._continuing()}
        # Likelihoods are of texts, without tools.
        tools = {"tools": self.tools} if self.tools and not request.is_likelihood else {}
        return {"model": self.model, "messages": messages, **tools, **fields}

    def _continuing(self) -> dict[str, Any]:
        """Return the fields that let a server continue the last message, in place of a new answer after it."""
        if self.dialect.forwards:
            return {"add_generation_prompt": False, "continue_final_message": True}
        self._note("prompts that begin the answer are sent, but this service has no option to continue it")
        return {}

    def _note(self, text: str) -> None:
        """Warn once."""
        if text not in self._noted:
            self._noted.add(text)
            log.warning("%s: %s", self.model, text)

    def options(self, request: Request) -> dict[str, Any]:
        """Return the fields of a request's body without model, messages and derived seed."""
        if request.is_likelihood:
            return dict(self._extra)
        fields = dict(self._generation_fields(request))
        if request.generation.get("seed") is None and "seed" not in self._extra:
            fields.pop("seed", None)
        return fields

    def _generation_fields(self, request: Request) -> dict[str, Any]:
        """Translate the generation options. Without sampling, they are the same for a whole task."""
        generation = request.generation_after(has_template=not self._is_plain)
        try:
            key = orjson.dumps(generation)
        except TypeError:  # options without a JSON form
            key = b""
        known = self._known.get(key)
        if known is not None:
            return known
        translate = map_responses_generation if self.dialect.is_responses else map_generation
        fields, ignored = translate(generation, request.seed, self.dialect)
        self.note_ignored(ignored)
        mine, theirs = fields.get(TEMPLATE_OPTIONS), self._extra.get(TEMPLATE_OPTIONS)
        fields = {**fields, **self._extra}
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            fields[TEMPLATE_OPTIONS] = {**theirs, **mine}  # those of the request take precedence
        if key and "seed" not in fields and len(self._known) < MOST_KNOWN:
            self._known[key] = fields
        return fields

    def _parts(
        self, part: ChatTextContent | ChatImageContent | ChatVideoContent | ChatAudioContent, form: SentForm
    ) -> Iterator[dict[str, Any]]:
        """Convert a part of a message to the form of the protocol (see ``docs/models/openai.md``)."""
        if isinstance(part, ChatTextContent):
            yield _text(part.text)
        elif isinstance(part, ChatImageContent):
            yield _image(part.url, form.images)
        elif isinstance(part, ChatAudioContent):
            yield _sound(part.url)
        elif self._pass_video_url:
            yield {"type": "video_url", "video_url": {"url": video_url(part.url)}}
        else:
            found = read_video(part, form.frames)
            for image, time in zip(form.frames.pictures(found), found.times(), strict=True):
                if self._timestamps:
                    yield _text(f"<{time:.1f} seconds>")
                yield _image(image, form.images)
            if self._with_sound and (heard := read_sound(part)) is not None:
                yield _sound(heard.value)


def _image(value: Any, options: WireOptions) -> dict[str, Any]:
    from lmms_eval.media.encode import image_url

    return {"type": "image_url", "image_url": {"url": image_url(value, options)}}


def _sound(value: Any) -> dict[str, Any]:
    from lmms_eval.media.audio import wire_audio

    sound = wire_audio(value, AUDIO_FORMATS)
    return {"type": "input_audio", "input_audio": {"data": sound.base64, "format": sound.format}}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": clean(text)}


def video_url(value: Any) -> str:
    """Return the URL of a video: its own, ``file://`` for a local file, or a data URL for bytes."""
    from lmms_eval.media.reference import resolve
    from lmms_eval.media.sent import note_file

    ref = resolve(value)
    note_file(ref, "video")
    if ref.kind == "url":
        return ref.url
    if ref.kind == "path" and ref.path is not None:
        return ref.path.resolve().as_uri()
    return f"data:{ref.mime or 'video/mp4'};base64,{base64.b64encode(ref.read_bytes()).decode('ascii')}"


def open_tools(arguments: ChatArguments, images: WireOptions) -> ToolServer | None:
    """Start the tools that the arguments name. Returns ``None`` if they name no tools.

    Raises:
        ModelError: the arguments contradict each other, or the tools do not start.
    """
    limits = ("mcp_max_calls", "mcp_max_tokens", "mcp_max_cost", "mcp_price")
    if arguments.mcp_server_path is None and arguments.tools is None:
        for name in limits:
            if getattr(arguments, name) is not None:
                raise ModelError(f"{name} is about tools: give mcp_server_path or tools too")
        return None
    if arguments.mcp_server_path is not None and arguments.tools is not None:
        raise ModelError("mcp_server_path and tools name different tools: give one of them")
    if (arguments.mcp_max_cost is None) != (arguments.mcp_price is None):
        raise ModelError(
            "mcp_max_cost and mcp_price need each other: mcp_price=INPUT:OUTPUT, for a million tokens each"
        )
    from lmms_eval.models.tools.toolbox import ImageTools, ToolLimits, ToolServer

    given = ToolLimits(
        timeout_s=arguments.mcp_timeout,
        rounds=arguments.mcp_max_rounds,
        characters=arguments.mcp_max_characters,
        calls=arguments.mcp_max_calls,
        tokens=arguments.mcp_max_tokens,
        cost=arguments.mcp_max_cost,
        price=arguments.mcp_price,
    )
    if arguments.mcp_server_path is not None:
        return ToolServer(arguments.mcp_server_path, given, images)
    return ImageTools(given, images)


class ChatModel(RemoteModel):
    """A ``RemoteModel`` that renders requests with a ``BodyBuilder``."""

    answer_arguments: tuple[str, ...] = CHAT_ANSWER_ARGUMENTS
    kinds: frozenset[RequestKind] = frozenset({"generate_until", "generate_visual_cot"})

    def __init__(self, arguments: ChatArguments, endpoint: Endpoint) -> None:
        self.builder = BodyBuilder(arguments, endpoint)
        super().__init__(arguments, endpoint.shown, self.builder.system_prompt)
        self.builder.leaves_stops_out = lambda: self.stops.is_off
        self.builder.note_ignored = self.note_ignored
        # The tools start here, so that a failure ends the run at once.
        self._toolbox = open_tools(arguments, arguments.wire_options(endpoint.takes_webp))
        if self._toolbox is not None:
            self.builder.tools = self._toolbox.functions

    def identity(self) -> Mapping[str, Any]:
        """Return the identity of a remote model, with its tools."""
        tools = {} if self._toolbox is None else {"tools": self._toolbox.identity()}
        return {**super().identity(), **tools}

    def describe(self) -> Mapping[str, Any]:
        """Return the description of a remote model, with its tool calls."""
        tools = {} if self._toolbox is None else {"tools": self._toolbox.describe()}
        return {**super().describe(), **tools}

    def exchanges(self) -> Callable[[], RequestExchange]:
        """Return a factory of exchanges, which run the tools that a reply calls."""
        toolbox = self._toolbox
        if toolbox is None:
            return super().exchanges()
        from lmms_eval.models.tools.toolbox import ToolRounds

        again = asyncio.Lock()
        return lambda: ToolRounds(toolbox, again)

    def close(self) -> None:
        """Stop the tool server."""
        if self._toolbox is not None:
            self._toolbox.close()

    def stops_here(self, request: Request) -> list[str]:
        """Return the stop strings beyond the maximum of the protocol."""
        return local_stops(request.generation_after(self.has_template), self.builder.dialect)

    def generation_options(self) -> TakenOptions:
        """Return the options of chat completions; servers other than a vendor's take all others too."""
        return taken_by(self.builder.dialect)

    def sent_options(self, request: Request) -> Mapping[str, Any]:
        """Return the fields of a request's body."""
        tools = {} if self._toolbox is None else {"tools": [one["function"]["name"] for one in self._toolbox.functions]}
        return {**self.builder.options(request), **tools}
