"""Measure the work of the device with torch's profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def busy_share(work: Callable[[], Any]) -> float | None:
    """Run ``work`` and return the share of the time from the first kernel to the last that kernels run.

    Returns ``None`` without a GPU. The profiler itself slows the host down, so this is a lower bound.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile

    if not torch.cuda.is_available():
        return None
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        work()
        torch.cuda.synchronize()
    spans = [
        (event.time_range.start, event.time_range.end)
        for event in seen.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
    ]
    return covered(spans)


def covered(spans: Iterable[tuple[float, float]]) -> float | None:
    """Return the share of the time from the first start to the last end that spans cover, counting overlaps once."""
    ordered = sorted(spans)
    if not ordered or ordered[0][0] == max(end for _, end in ordered):
        return None
    total, reached = 0.0, ordered[0][0]
    for start, end in ordered:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total / (reached - ordered[0][0])
