"""The thread in which a plugin of the class interface runs, so that its partial results can leave while it works."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TorchState:
    """Settings that torch keeps per thread and that a plugin's constructor may have changed in its own."""

    device: int | None
    grad_enabled: bool

    @classmethod
    def capture(cls) -> TorchState | None:
        """The state of the calling thread; ``None`` while torch is not imported."""
        torch = sys.modules.get("torch")
        if torch is None:
            return None
        device = torch.cuda.current_device() if torch.cuda.is_initialized() else None
        return cls(device, torch.is_grad_enabled())

    def apply(self) -> None:
        torch = sys.modules["torch"]
        torch.set_grad_enabled(self.grad_enabled)
        if self.device is not None:
            torch.cuda.set_device(self.device)


class Worker:
    """One daemon thread that runs jobs in order. A daemon, so that an interrupted run need not wait for a plugin."""

    def __init__(self, state: TorchState | None) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._state = state
        self._thread = threading.Thread(target=self._run, name="legacy-plugin", daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], None]) -> None:
        """``job`` must not raise."""
        self._jobs.put(job)

    def stop(self) -> None:
        """End after the running job, without waiting for it."""
        self._jobs.put(None)

    def _run(self) -> None:
        loop = asyncio.new_event_loop()
        try:
            if self._state is not None:
                self._state.apply()
            while (job := self._jobs.get()) is not None:
                # Plugins call asyncio.get_event_loop(), which in any thread but the main one finds only a loop set
                # before; asyncio.run, where a plugin calls it, takes that away.
                asyncio.set_event_loop(loop)
                job()
        finally:
            loop.close()
