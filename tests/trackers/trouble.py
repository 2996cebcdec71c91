"""A tracker that fails as told: its arguments name a call and what happens in it. It writes down what it was told."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from lmms_eval.trackers.contract import Beginning, FinalResults, LiveNumbers, RunEnding, TaskSamples, TrackerPlace


class Trouble:
    def start(self, beginning: Beginning) -> TrackerPlace:
        self.arguments = dict(beginning.arguments)
        self._note("start", run_id=beginning.run_id, pid=os.getpid())
        return TrackerPlace(folder=str(self.arguments["file"]), hint="look into it")

    def step(self, step: LiveNumbers) -> None:
        self._note("step", documents=step.documents, values=dict(step.values))

    def results(self, results: FinalResults) -> None:
        self._note(
            "results", scalars=dict(results.scalars), rows=[len(table.rows) for table in results.tables.values()]
        )

    def samples(self, samples: TaskSamples) -> None:
        self._note("samples", task=samples.task, rows=len(samples.rows))

    def finish(self, ending: RunEnding) -> TrackerPlace:
        self._note("finish", state=ending.state)
        return TrackerPlace(folder=str(self.arguments["file"]), hint="look into it")

    def _note(self, call: str, **said: object) -> None:
        with Path(self.arguments["file"]).open("a") as file:
            file.write(json.dumps({"call": call, **said}) + "\n")
        if self.arguments.get("in") == call:
            getattr(self, f"_{self.arguments['how']}")()

    def _raise(self) -> None:
        raise RuntimeError(f"no room for {os.environ.get('TROUBLE_API_KEY', '')}\n\x1b[31mat all")

    def _exit(self) -> None:
        sys.exit(3)

    def _die(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    def _hang(self) -> None:
        time.sleep(600)

    def _stop(self) -> None:
        """As a process that is frozen: it does not even read its pipe."""
        os.kill(os.getpid(), signal.SIGSTOP)

    def _print(self) -> None:
        print("not a reply")
        sys.stdout.flush()
        os.write(1, b"nor this\n")
