"""The C library's heap: memory that one thread frees must be there for the others."""

from __future__ import annotations

import ctypes
import functools
import os
import sys

_M_ARENA_MAX = -8


@functools.cache
def share_heap() -> bool:
    """Let all threads that start from now on allocate from one heap (glibc); false where that cannot be said.

    Else each thread has its own: what one has decoded and freed lies idle while another decodes, and a process with
    two preparing threads takes twice the memory of its pictures. ``MALLOC_ARENA_MAX`` wins where it is set.
    """
    if not sys.platform.startswith("linux") or "MALLOC_ARENA_MAX" in os.environ:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_ARENA_MAX, 1))
