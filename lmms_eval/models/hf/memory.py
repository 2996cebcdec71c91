"""Memory of the device that a model runs on."""

from __future__ import annotations

import sys
from typing import Any


def memory_share(device: Any) -> float | None:
    """The most that was in use since the start, as a share of what the device has; ``None`` on the CPU."""
    if device.type != "cuda":
        return None
    import torch

    total = int(torch.cuda.get_device_properties(device).total_memory)
    return int(torch.cuda.max_memory_reserved(device)) / total


def peak_memory(device: Any) -> int | None:
    """Bytes: of the device's allocator, or of the process where the model is on the CPU."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    if device.type != "cpu" or sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
