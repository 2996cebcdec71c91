"""Asynchronous iteration that ends in order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def closed_on_error(items: AsyncIterator[Any]) -> AsyncIterator[None]:
    """Close what is iterated over when the block raises an exception.

    A generator that is left open is closed by the event loop together with the generators that it uses itself, in any
    order, and asyncio prints a traceback when one of them is still running. ``KeyboardInterrupt`` and its like pass
    through at once: nothing is waited for then.
    """
    try:
        yield
    except Exception:  # whatever the block raises passes on
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
        raise
