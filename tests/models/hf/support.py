"""A stream over prepared requests, and short ways to write requests and pictures."""

import asyncio
from collections.abc import AsyncIterator

import numpy as np
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request
from lmms_eval.models.hf.model import HuggingFace


class ListStream:
    """Hands out a list of requests; remembers how many were asked for where that may wait for answers."""

    def __init__(self, requests):
        self.waiting = list(requests)
        self.asked = []

    def take(self, max_n):
        self.asked.append(max_n)
        return self.take_full(max_n)

    def take_full(self, max_n):
        taken, self.waiting = self.waiting[:max_n], self.waiting[max_n:]
        return taken

    async def take_async(self, max_n):
        return self.take(max_n)


def picture(width, height, seed=0):
    """A picture of coarse noise."""
    noise = np.random.default_rng(seed).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((width, height))


def ask(number, text, images=(), kind="generate_until", continuation=None, **generation):
    """A request with pictures first, then text."""
    content = [{"type": "image", "url": image} for image in images] + [{"type": "text", "text": text}]
    return converse(number, [{"role": "user", "content": content}], kind, continuation, **generation)


def converse(number, messages, kind="generate_until", continuation=None, **generation):
    return Request(
        id=f"task/{number}",
        kind=kind,
        task=None,
        doc_id=number,
        build_messages=lambda: ChatMessages(messages=messages),
        generation={"max_new_tokens": 16, **generation},
        continuation=continuation,
        seed=1000 + number,
    )


def answers(model, requests):
    """Responses by number of the request."""
    prepared = [model.prepare(request) for request in requests]
    responding = model.respond(ListStream(prepared))
    responses = asyncio.run(_all(responding)) if isinstance(responding, AsyncIterator) else list(responding)
    assert sorted(response.request_id for response in responses) == sorted(request.id for request in requests)
    return {int(response.request_id.split("/")[1]): response for response in responses}


async def _all(responses):
    return [response async for response in responses]


def build(folder, cls=HuggingFace, **arguments):
    """Without the dry requests at load, which cost time and would be counted by tests that count."""
    return cls(pretrained=str(folder), device="cpu", **{"dry_requests": False, **arguments})
