"""Pictures from a server with an images API (``POST /images/generations``)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import orjson

from lmms_eval.api.request import GeneratedImage, Request, Response
from lmms_eval.errors import MediaError
from lmms_eval.models.openai.arguments import PATHS, find_endpoint, parse_arguments
from lmms_eval.models.openai.errors import AttemptError, error_in_body
from lmms_eval.models.openai.reply import Reply, picture_of_base64, picture_of_url, read_tokens
from lmms_eval.models.remote.stops import StopSending
from lmms_eval.models.text_to_image.protocol import DrawingError

if TYPE_CHECKING:
    from lmms_eval.api.messages import ChatMessages
    from lmms_eval.api.task import Task
    from lmms_eval.models.openai.asking import Asker
    from lmms_eval.models.openai.client import Client

PATH = "/images/generations"
FIELDS = ("size", "quality", "style", "background", "response_format")
"""Arguments that go into the body as they are; ``extra_body`` takes any other."""
_ALWAYS_BASE64 = "gpt-image"
"""Models that refuse ``response_format``."""


class ImagesApi:
    """Asks with the retries and the concurrency of the back end ``openai``, in a thread of its own.

    Args:
        model: the model's name.
        arguments: ``FIELDS``, and ``base_url``, ``api_key``, ``num_concurrent``, ``timeout``, ``max_retries``,
            ``extra_body`` as for ``openai``.

    Raises:
        ModelError: an unknown or wrong argument, or no key for the public API.
    """

    def __init__(self, model: str, arguments: Mapping[str, Any]) -> None:
        from dataclasses import replace

        from lmms_eval.models.openai.asking import Asker, RetryPolicy, Tally
        from lmms_eval.models.openai.client import Client
        from lmms_eval.models.openai.concurrency import Gate

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
        policy = RetryPolicy(settings.max_retries, settings.retry_backoff_s)

        async def make_gate() -> Gate:  # inside the event loop
            return Gate(settings)

        self._asker: Asker = Asker(self._client.complete, self._run(make_gate()), policy, StopSending(), self._tally)

    def draw(self, descriptions: Sequence[str], seed: int) -> list[GeneratedImage]:  # noqa: ARG002 - none in this API
        """See ``TextToImage``."""
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
        """Server and body."""
        return {"images_api": self._endpoint.shown, **self._body}

    def describe(self) -> Mapping[str, Any]:
        """Server, model, pictures and retries."""
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
            # No document of a run stands behind this request, and its body is made already.
            request = Request("text-to-image", "generate_until", cast("Task", None), 0, _no_messages)
            requests.append(request.with_payload(body, len(body)))
        return await asyncio.gather(*map(self._asker.ask, requests))


def _read(raw: bytes, url: str) -> Reply:
    """The first picture of an answer.

    Raises:
        AttemptError: ``malformed``, or what an ``error`` object in the body stands for.
    """
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
