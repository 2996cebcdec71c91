"""A model that answers, hangs with children of its own, dies of a signal, floods its log, or tells its environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms

LINE = "x" * 1023 + "\n"


class Faulty(lmms):
    def __init__(self, mode: str = "answer", megabytes: int = 100, pretrained: str = "") -> None:
        super().__init__()
        self.mode, self.megabytes = mode, megabytes

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Instance]) -> list[Any]:
        raise NotImplementedError

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        if self.mode == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.mode == "flood":
            for _ in range(self.megabytes << 10):
                sys.stdout.write(LINE)
            sys.stdout.flush()
        if self.mode == "leak":
            print(dict(os.environ), file=sys.stderr, flush=True)
        if self.mode == "raise":
            raise RuntimeError(f"{os.environ['HF_TOKEN']} of {sys.executable}")
        if self.mode in ("hang", "stubborn"):
            self._hang()
        return [str(request.args[0]).partition("ANSWER=")[2] for request in requests]

    def _hang(self) -> None:
        """Note a child, and a grandchild in a session of its own, in the working folder; then sleep."""
        if self.mode == "stubborn":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        child = subprocess.Popen(["sleep", "600"])
        far = subprocess.run(
            ["bash", "-c", "setsid sleep 600 > /dev/null 2>&1 & echo $!"], capture_output=True, text=True, check=True
        )
        Path("pids.part").write_text(f"{os.getpid()} {child.pid} {far.stdout}")
        Path("pids.part").rename("pids")
        time.sleep(600)
