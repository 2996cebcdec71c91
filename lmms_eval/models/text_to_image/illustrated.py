"""Any model, with the pictures drawn that its answers describe (``--t2i``)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lmms_eval.api.generation import TakenOptions
from lmms_eval.api.messages import ChatMessage, ChatMessages, ChatTextContent
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Part, Request, Response
from lmms_eval.api.task import Task
from lmms_eval.filters.reasoning import thoughts_apart
from lmms_eval.models.text_to_image.protocol import DrawingError, TextToImage
from lmms_eval.utils.picture_marks import Wanted, split_marks

MAX_THREADS = 32
ASKED = "\nAnswer with a description of the picture in words, as <image>description</image>."


class IllustratedModel(Model):
    """Answers as the inner model, each ``<image>description</image>`` replaced by a picture.

    An answer that has pictures already, or asks for none, stays what it is. Where a picture cannot be drawn, the
    request fails: another start asks again.
    """

    def __init__(self, inner: Model, painter: TextToImage, owns_inner: bool = True) -> None:
        self._inner, self._painter, self._owns_inner = inner, painter, owns_inner
        self.kinds = inner.kinds | {"generate_visual_cot"}
        self.concurrency, self.ordered = inner.concurrency, inner.ordered
        self.collective_forward, self.reads_documents = inner.collective_forward, inner.reads_documents

    def prepare(self, request: Request) -> Request:
        """As the inner model; where a task asks for a picture by itself, the form is said in which it is described."""
        draws = request.task.output_type == "generate_visual_cot" and request.generation.get("visual_cot")
        if not draws:
            return self._inner.prepare(request)
        return self._inner.prepare(request.with_messages(partial(_asking_for_marks, request.build_messages)))

    def respond(self, stream: RequestStream) -> Iterator[Response] | AsyncIterator[Response]:
        """Answer as the inner model does; beside an asynchronous one pictures are drawn in threads."""
        responses = self._inner.respond(stream)
        if isinstance(responses, AsyncGenerator):
            return self._draw_beside(responses)
        if isinstance(responses, AsyncIterator):
            return self._draw_beside(response async for response in responses)
        return map(self.illustrated, responses)

    def illustrated(self, response: Response) -> Response:
        """A response with its pictures drawn. What a model drafts in its thoughts is not drawn."""
        response = thoughts_apart(response)
        if response.parts or not response.text:
            return response
        pieces = split_marks(response.text)
        wanted = [piece.description for piece in pieces if isinstance(piece, Wanted)]
        if not wanted:
            return response
        try:
            seed = int.from_bytes(hashlib.sha256(response.request_id.encode()).digest()[:4])  # the same on every start
            pictures = iter(self._painter.draw(wanted, seed))
        except DrawingError as error:
            return Response.failure(response.request_id, error.kind, str(error), response.attempts)
        parts: tuple[Part, ...] = tuple(piece if isinstance(piece, str) else next(pictures) for piece in pieces)
        return replace(response, text="".join(part for part in parts if isinstance(part, str)), parts=parts)

    def generation_options(self) -> TakenOptions | None:
        return self._inner.generation_options()

    def sent_with(self, request: Request) -> Mapping[str, Any]:
        return self._inner.sent_with(request)

    def identity(self) -> Mapping[str, Any]:
        """Return the identity, empty where the inner model's is: nothing tells such an object from others."""
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

    async def _draw_beside(self, responses: AsyncGenerator[Response, None]) -> AsyncGenerator[Response, None]:
        """Responses in the order in which they are complete."""
        pool = ThreadPoolExecutor(min(MAX_THREADS, self._painter.concurrency), "text-to-image")
        done: asyncio.Queue[Response | BaseException | None] = asyncio.Queue()
        feeder = asyncio.create_task(self._feed(responses, pool, done))
        try:
            while (item := await done.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            feeder.cancel()
            await asyncio.gather(feeder, return_exceptions=True)
            pool.shutdown(wait=False, cancel_futures=True)

    async def _feed(
        self,
        responses: AsyncGenerator[Response, None],
        pool: ThreadPoolExecutor,
        done: asyncio.Queue[Response | BaseException | None],
    ) -> None:
        loop = asyncio.get_running_loop()
        drawing: set[asyncio.Future[Response]] = set()

        def finished(future: asyncio.Future[Response]) -> None:
            drawing.discard(future)
            if not future.cancelled():
                error = future.exception()
                done.put_nowait(future.result() if error is None else error)

        try:
            async with aclosing(responses):
                async for response in responses:
                    future = loop.run_in_executor(pool, self.illustrated, response)
                    drawing.add(future)
                    future.add_done_callback(finished)
            if drawing:
                await asyncio.wait(set(drawing))
                await asyncio.sleep(0)  # let the last callbacks run
            done.put_nowait(None)
        except Exception as error:  # noqa: BLE001 - whatever the inner model raised goes on to the engine
            done.put_nowait(error)


def _asking_for_marks(build_messages: Callable[[], ChatMessages]) -> ChatMessages:
    *before, last = build_messages().messages
    asked = ChatMessage(role=last.role, content=[*last.content, ChatTextContent(text=ASKED)])
    return ChatMessages(messages=[*before, asked])
