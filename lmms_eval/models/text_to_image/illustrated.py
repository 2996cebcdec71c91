"""Models that describe pictures in their answers. A text-to-image model draws them (``--t2i``)."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import orjson
from msgspec import structs

from lmms_eval.api.generation import TakenOptions
from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.messages import ChatMessage, ChatMessages, ChatTextContent
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import ErrorKind, GeneratedImage, Part, Request, Response
from lmms_eval.api.task import Task
from lmms_eval.errors import MediaError, ModelError
from lmms_eval.filters.reasoning import thoughts_apart
from lmms_eval.models.openai.arguments import PATHS, find_endpoint, parse_arguments
from lmms_eval.models.remote.errors import AttemptError, error_in_body
from lmms_eval.models.remote.model import import_sdk
from lmms_eval.models.remote.reply import Reply, picture_of_base64, picture_of_url, read_tokens
from lmms_eval.models.remote.stops import StopSending
from lmms_eval.utils.picture_marks import WantedPicture, split_marks

if TYPE_CHECKING:
    from lmms_eval.models.openai.client import Client
    from lmms_eval.models.remote.asking import Asker

CALL = ("num_inference_steps", "guidance_scale", "height", "width", "negative_prompt")
"""Arguments for a call of the pipeline."""
LOADING = ("dtype", "revision", "variant", "device")
_ERRORS = (RuntimeError, ValueError, TypeError, OSError)
"""Exceptions of a pipeline for descriptions that it cannot draw, and for a full GPU."""
PATH = "/images/generations"
FIELDS = ("size", "quality", "style", "background", "response_format")
"""Arguments that are sent unchanged in the body. ``extra_body`` takes any other."""
_ALWAYS_BASE64 = "gpt-image"
"""The prefix of models that reject ``response_format``."""
PROVIDERS = ("images", "diffusers")
MAX_THREADS = 32
ASKED = "\nAnswer with a description of the picture in words, as <image>description</image>."


class DrawingError(Exception):
    """A picture could not be drawn, after all retries."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind


class TextToImage(Protocol):
    """A text-to-image model. Up to ``concurrency`` threads may call ``draw`` at the same time."""

    concurrency: int

    def draw(self, descriptions: Sequence[str], seed: int) -> list[GeneratedImage]:
        """Return a picture for each description, in order. Raises ``DrawingError`` if a picture could not be drawn."""

    def identity(self) -> Mapping[str, Any]:
        """Return everything that determines its pictures, as a part of the run key."""

    def describe(self) -> Mapping[str, Any]:
        """Return its description for the results."""

    def close(self) -> None:
        """Free its resources."""


class DiffusersPipeline:
    """A text-to-image pipeline of diffusers. Seeds make its pictures reproducible.

    Args:
        path: folder or hub name.
        arguments: the arguments of ``CALL`` and ``LOADING``.
        device: the device if ``arguments`` have none; by default the GPU if there is one.

    Raises:
        ModelError: an argument is unknown, diffusers is not installed, or the pipeline cannot be loaded.
    """

    concurrency = 1

    def __init__(self, path: str, arguments: Mapping[str, Any], device: str | None = None) -> None:
        unknown = sorted(set(arguments) - {*CALL, *LOADING})
        if unknown:
            raise ModelError(
                f"--t2i_args: diffusers takes no {', '.join(unknown)}; it takes {', '.join(CALL + LOADING)}"
            )
        diffusers, torch = (import_sdk(name, f"--t2i diffusers:{path}", "t2i") for name in ("diffusers", "torch"))
        self._path, self._lock, self._drawn = path, threading.Lock(), 0
        self._call = {name: arguments[name] for name in CALL if name in arguments}
        dtype = str(arguments.get("dtype") or ("float16" if torch.cuda.is_available() else "float32"))
        self._device = str(arguments.get("device") or device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._loading = {name: arguments[name] for name in ("revision", "variant") if name in arguments}
        self._dtype, self._torch = dtype, torch
        try:
            pipeline = diffusers.DiffusionPipeline.from_pretrained(
                path, torch_dtype=getattr(torch, dtype), **self._loading
            )
            self._pipeline: Any = pipeline.to(self._device)
        except (*_ERRORS, AttributeError, ImportError) as error:
            raise ModelError(f"--t2i diffusers:{path} cannot be loaded: {type(error).__name__}: {error}") from error
        if hasattr(self._pipeline, "set_progress_bar_config"):
            self._pipeline.set_progress_bar_config(disable=True)

    def draw(self, descriptions: Sequence[str], seed: int) -> list[GeneratedImage]:
        """Draw the pictures in sequence, each with its own seed."""
        pictures = []
        with self._lock:
            for number, description in enumerate(descriptions):
                generator = self._torch.Generator("cpu").manual_seed((seed + number) % 2**63)
                try:
                    made = self._pipeline(description, generator=generator, **self._call).images[0]
                except _ERRORS as error:
                    kind = type(error).__name__
                    where = f"the picture of {description[:60]!r} was not drawn: {kind}: {error}"
                    raise DrawingError("out_of_memory" if "OutOfMemory" in kind else "internal", where) from error
                file = io.BytesIO()
                made.save(file, format="PNG")
                pictures.append(generated_image(file.getvalue()))
                self._drawn += 1
        return pictures

    def identity(self) -> Mapping[str, Any]:
        """Return the pipeline, the precision and the call arguments."""
        return {"diffusers": self._path, "dtype": self._dtype, **self._loading, **self._call}

    def describe(self) -> Mapping[str, Any]:
        """Return the identity, the device and the number of pictures."""
        return {**self.identity(), "device": self._device, "pictures": self._drawn}

    def close(self) -> None:
        """Free the weights."""
        self._pipeline = None


class ImagesApi:
    """A model on a server with an images API, with the retries and the concurrency of the back end ``openai``.

    It runs in its own thread.

    Args:
        model: the model's name.
        arguments: ``FIELDS``, and ``base_url``, ``api_key``, ``num_concurrent``, ``timeout``, ``max_retries``,
            ``extra_body`` as for ``openai``.

    Raises:
        ModelError: an argument is unknown or wrong, or there is no key for the public API.
    """

    def __init__(self, model: str, arguments: Mapping[str, Any]) -> None:
        from lmms_eval.models.openai.client import Client
        from lmms_eval.models.remote.asking import Asker, Gate, Tally

        own = {name: arguments[name] for name in FIELDS if name in arguments}
        rest = {name: value for name, value in arguments.items() if name not in FIELDS}
        settings = parse_arguments({**rest, "model": model}, os.environ)
        endpoint = find_endpoint(settings, os.environ)

        chat = PATHS["chat"]
        head, _, query = endpoint.url.partition("?")
        url = head.removesuffix(chat) + PATH + (f"?{query}" if query else "")
        self._endpoint = replace(endpoint, url=url, shown=endpoint.shown.removesuffix(chat) + PATH)
        default = {} if model.startswith(_ALWAYS_BASE64) else {"response_format": "b64_json"}
        self._body = {"model": model, "n": 1, **default, **own, **settings.extra_body}
        self.concurrency = settings.ceiling
        self._tally, self._drawn = Tally(), 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="text-to-image", daemon=True)
        self._thread.start()
        client = Client(self._endpoint, settings, _read)
        self._client: Client = self._run(client.__aenter__())

        async def make_gate() -> Gate:  # inside the event loop
            return Gate(settings)

        self._asker: Asker = Asker(self._client.complete, self._run(make_gate()), settings, StopSending(), self._tally)

    def draw(self, descriptions: Sequence[str], seed: int) -> list[GeneratedImage]:  # noqa: ARG002 - no seed in this API
        """Draw the pictures concurrently."""
        responses = self._run(self._ask(descriptions))
        pictures = []
        for description, response in zip(descriptions, responses, strict=True):
            if response.error is not None:
                what = f"the picture of {description[:60]!r} was not drawn: {response.error.message}"
                raise DrawingError(response.error.kind, what)
            pictures += [part for part in response.parts if isinstance(part, GeneratedImage)]
        self._drawn += len(pictures)
        return pictures

    def identity(self) -> Mapping[str, Any]:
        """Return the server and the body."""
        return {"images_api": self._endpoint.shown, **self._body}

    def describe(self) -> Mapping[str, Any]:
        """Return the server, the model, the number of pictures, and the retries."""
        return {
            "base_url": self._endpoint.shown,
            "model": self._body["model"],
            "pictures": self._drawn,
            **self._tally.to_dict(),
        }

    def close(self) -> None:
        """End the thread."""
        if not self._loop.is_closed():
            self._run(self._client.__aexit__(None, None, None))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _ask(self, descriptions: Sequence[str]) -> list[Response]:
        requests = []
        for description in descriptions:
            body = orjson.dumps({**self._body, "prompt": description})
            # This request belongs to no document of a run, and its body is complete.
            request = Request("text-to-image", "generate_until", cast("Task", None), 0, _no_messages)
            requests.append(request.with_payload(body, len(body)))
        return await asyncio.gather(*map(self._asker.ask, requests))


def _read(raw: bytes, url: str) -> Reply:
    """Read the first picture of an answer. Raises ``AttemptError`` if it is malformed, or contains an error."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise AttemptError("malformed", f"{url} sent no JSON ({error})") from error
    if isinstance(body, dict) and body.get("error"):
        raise error_in_body(body, raw, url)
    found = body.get("data") if isinstance(body, dict) else None
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        raise AttemptError("malformed", f"{url} sent no picture: data is missing")
    try:
        first = found[0]
        picture = picture_of_base64(first["b64_json"]) if first.get("b64_json") else picture_of_url(first.get("url"))
    except MediaError as error:
        raise AttemptError("malformed", f"{url} sent no picture: {error}") from error
    return Reply.of_parts([picture], "stop", read_tokens(body.get("usage"), "input_tokens", "output_tokens"))


def _no_messages() -> ChatMessages:
    raise NotImplementedError("a request for a picture has no messages")


def open_text_to_image(name: str, arguments: Mapping[str, Any], device: str | None = None) -> TextToImage:
    """Open ``NAME`` or ``images:NAME`` (a model with an images API), or ``diffusers:PATH`` (a local pipeline).

    Raises:
        ModelError: the arguments are wrong, a package is not installed, or the pipeline cannot be loaded.
    """
    head, found, rest = name.partition(":")
    provider, model = (head, rest) if found and head in PROVIDERS else ("images", name)
    if provider == "diffusers":
        return DiffusersPipeline(model, arguments, device)
    return ImagesApi(model, arguments)


class IllustratedModel(Model):
    """The answers of an inner model, where pictures replace each ``<image>description</image>``.

    Answers that already have pictures, or describe none, are unchanged. If a picture cannot be drawn, the request
    fails, and a later start retries it.
    """

    def __init__(self, inner: Model, painter: TextToImage, owns_inner: bool = True) -> None:
        self._inner, self._painter, self._owns_inner = inner, painter, owns_inner
        self.kinds = inner.kinds | {"generate_visual_cot"}
        self.concurrency, self.collects, self.ordered = inner.concurrency, inner.collects, inner.ordered
        self.collective_forward, self.reads_documents = inner.collective_forward, inner.reads_documents

    @property
    def media_limits(self) -> frozenset[str]:
        """Those of the inner model."""
        return self._inner.media_limits

    def prepare(self, request: Request) -> Request:
        """Prepare the request. If the task requires a picture, the prompt states the form of the description."""
        draws = request.task.output_type == "generate_visual_cot" and request.generation.get("visual_cot")
        if not draws:
            return self._inner.prepare(request)
        return self._inner.prepare(request.with_messages(partial(_asking_for_marks, request.build_messages)))

    def respond(self, stream: RequestStream) -> Iterator[Response] | AsyncIterator[Response]:
        """Yield the inner model's answers with pictures, which for an asynchronous model are drawn in threads."""
        responses = self._inner.respond(stream)
        if isinstance(responses, AsyncGenerator):
            return self._draw_in_threads(responses)
        if isinstance(responses, AsyncIterator):
            return self._draw_in_threads(response async for response in responses)
        return map(self.illustrated, responses)

    def illustrated(self, response: Response) -> Response:
        """Return a response with its pictures drawn. Descriptions in thoughts are ignored."""
        response = thoughts_apart(response)
        if response.parts or not response.text:
            return response
        pieces = split_marks(response.text)
        wanted = [piece.description for piece in pieces if isinstance(piece, WantedPicture)]
        if not wanted:
            return response
        try:
            seed = int.from_bytes(hashlib.sha256(response.request_id.encode()).digest()[:4])  # the same on every start
            pictures = iter(self._painter.draw(wanted, seed))
        except DrawingError as error:
            return Response.failure(response.request_id, error.kind, str(error), response.attempts)
        parts: tuple[Part, ...] = tuple(piece if isinstance(piece, str) else next(pictures) for piece in pieces)
        return structs.replace(response, text="".join(part for part in parts if isinstance(part, str)), parts=parts)

    def generation_options(self) -> TakenOptions | None:
        return self._inner.generation_options()

    def sent_with(self, request: Request) -> Mapping[str, Any]:
        return self._inner.sent_with(request)

    def identity(self) -> Mapping[str, Any]:
        """Return the identity; empty if that of the inner model is empty, as such objects cannot be distinguished."""
        inner = self._inner.identity()
        return {**inner, "t2i": dict(self._painter.identity())} if inner else {}

    def describe(self) -> Mapping[str, Any]:
        return {**self._inner.describe(), "t2i": dict(self._painter.describe())}

    def attach_tasks(self, tasks: Sequence[Task]) -> None:
        self._inner.attach_tasks(tasks)

    def attach_folder(self, folder: Path) -> None:
        self._inner.attach_folder(folder)

    def close(self) -> None:
        if self._owns_inner:
            self._inner.close()
        self._painter.close()

    async def _draw_in_threads(self, responses: AsyncGenerator[Response, None]) -> AsyncGenerator[Response, None]:
        """Yield responses as soon as their pictures are drawn."""
        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(min(MAX_THREADS, self._painter.concurrency), "text-to-image")
        drawing: set[asyncio.Future[Response]] = set()
        arriving: set[asyncio.Future[Response | None]] = {asyncio.ensure_future(anext(responses, None))}
        try:
            while arriving or drawing:
                await asyncio.wait(drawing | arriving, return_when=asyncio.FIRST_COMPLETED)
                for drawn in [future for future in drawing if future.done()]:
                    drawing.discard(drawn)
                    yield drawn.result()
                for arrived in [future for future in arriving if future.done()]:
                    arriving.discard(arrived)
                    if (response := arrived.result()) is not None:
                        drawing.add(loop.run_in_executor(pool, self.illustrated, response))
                        arriving.add(asyncio.ensure_future(anext(responses, None)))
        finally:
            for future in arriving:
                future.cancel()
            await asyncio.gather(*arriving, return_exceptions=True)
            await responses.aclose()
            pool.shutdown(wait=False, cancel_futures=True)


def _asking_for_marks(build_messages: Callable[[], ChatMessages]) -> ChatMessages:
    own = build_messages()
    *before, last = own.messages
    asked = ChatMessage(role=last.role, content=[*last.content, ChatTextContent(text=ASKED)])
    return ChatMessages(messages=[*before, asked], is_plain=own.is_plain)
