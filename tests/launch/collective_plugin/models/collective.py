"""Each call begins with a collective over its size, each batch with one over its turn: out of step means an error."""

from __future__ import annotations

import os
import time
from typing import Any

from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms

BATCH = 2


class Collective(lmms):
    def __init__(self, trace: str, bad: int = -1) -> None:
        super().__init__()
        import torch.distributed as dist

        self.trace, self.bad = trace, bad
        # No arguments, which would make it another model: the same command must go on without the disturbance.
        self.die_at, self.raise_at = int(os.environ.get("DIE_AT", "0")), int(os.environ.get("RAISE_AT", "0"))
        self.calls, self.turns = 0, 0
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            dist.init_process_group("gloo")

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Instance]) -> list[Any]:
        raise NotImplementedError

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        self.calls += 1
        self._disturb()
        time.sleep(float(os.environ.get("CALL_TAKES_S", "0")))
        self._same(len(requests))
        answers = []
        for start in range(0, len(requests), BATCH):
            self.turns += 1
            self._same(self.turns)
            for request in requests[start : start + BATCH]:
                context = str(request.args[0])
                with open(self.trace, "a", encoding="utf-8") as file:
                    file.write(f"{self.rank} {request.args[3]}\n")
                answers.append(context.partition("ANSWER=")[2])
        # After the last collective: it fails here alone, and the processes are still in step.
        if any(f"Question {self.bad}:" in str(request.args[0]) for request in requests):
            raise ValueError("cannot answer this")
        return answers

    def _disturb(self) -> None:
        if self.rank == self.world_size - 1 and self.die_at == self.calls:
            os._exit(9)
        if self.rank == self.world_size - 1 and self.raise_at == self.calls:
            raise RuntimeError("failed before the collective")

    def _same(self, number: int) -> None:
        """All processes are here, with the same number."""
        import torch
        import torch.distributed as dist

        if self.world_size == 1:
            return
        numbers = [torch.zeros(1, dtype=torch.int64) for _ in range(self.world_size)]
        dist.all_gather(numbers, torch.tensor([number]))
        assert {int(other) for other in numbers} == {number}, f"out of step: {numbers}"
