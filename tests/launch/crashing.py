"""A model that ends its process without a word in the middle of the first attempt, for tests under a launcher."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Response


class Crashing(Model):
    """Answers rightly; process 1 of the first attempt kills itself after ten answers."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        first_attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
        for count, request in enumerate(iter(lambda: (stream.take(1) or [None])[0], None)):
            assert request is not None
            if first_attempt and os.environ.get("RANK") == "1" and count == 10:
                os._exit(9)
            with open(self.trace, "a", encoding="utf-8") as file:
                file.write(f"{request.doc_id}\n")
            time.sleep(0.02)
            yield Response(request.id, text=request.context.partition("ANSWER=")[2], finish_reason="stop")

    def identity(self) -> dict[str, Any]:
        return {"crashing": 1}


if __name__ == "__main__":
    from lmms_eval.config import build_config
    from lmms_eval.evaluator import run

    tasks, out, trace, restarts = sys.argv[1:]
    values = {
        "model": "crashing", "tasks": "bench_text", "include_path": tasks, "output_path": out, "log_samples": True,
        "verbosity": "WARNING", "max_restarts": restarts,
    }  # fmt: skip
    sys.exit(run(build_config(values), Crashing(Path(trace))).exit_code)
