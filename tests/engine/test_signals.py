from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lmms_eval.engine.signals import EndNow, Interrupts

ROOT = Path(__file__).parents[2]
RUN = """
import sys, time
from pathlib import Path
from lmms_eval.api.task import Selection
from lmms_eval.engine.evaluate import EngineOptions, evaluate
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.store import RunStore
from tests.engine.fakes import FakeModel, FakeTask, right_answer

{model}

grace, folder = float(sys.argv[1]), Path(sys.argv[2])
task, store = FakeTask(500), RunStore(folder, "scoring")
result = evaluate([plan_task(task, None, 0)], Selection((task,)), Chosen(), store, EngineOptions(grace_s=grace))
store.close()
print(result.state, result.asking.interrupted, result.asking.cut_short, result.tasks[0].outcome.scored, flush=True)
"""
STEADY = """
def slow(request):
    print("asked", flush=True)
    time.sleep(0.02)
    return right_answer(request)

Chosen = lambda: FakeModel(slow, batch=2)
"""
STUBBORN = """
def stuck(request):
    print("asked", flush=True)
    for _ in range(100):
        try:
            time.sleep(0.3)
        except Exception:
            pass
    return right_answer(request)

Chosen = lambda: FakeModel(stuck, batch=2)
"""
LOOP = """
import asyncio
from lmms_eval.api.model import Model
from lmms_eval.api.request import Response

class Chosen(Model):
    async def respond(self, stream):
        async def busy(request):
            while True:  # the event loop is never idle: a signal arrives inside a task
                try:
                    sum(range(1000))
                    await asyncio.sleep(0)
                except Exception:
                    pass
        requests = await stream.take_async(2)
        print("asked", flush=True)
        await asyncio.gather(*(busy(request) for request in requests))
        yield Response(requests[0].id, text="never")
"""


def interrupted(folder: Path, model: str, grace: float, signals: int) -> tuple[list[str], float]:
    """Start a run, send it signals 0.1 s apart once it has asked; its last line as words, and how long it took."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN.format(model=model), str(grace), str(folder)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "asked"
    start = time.monotonic()
    for _ in range(signals):
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=25)
    assert process.returncode == 0, err
    assert "what is in flight has" in err
    return out.splitlines()[-1].split(), time.monotonic() - start


def test_the_first_signal_lets_what_is_in_flight_finish(tmp_path: Path) -> None:
    words, seconds = interrupted(tmp_path, STEADY, 10, 1)
    assert words[:3] == ["interrupted", "2", "False"]
    assert 0 < int(words[3]) < 500
    assert seconds < 8


@pytest.mark.parametrize("model", [STUBBORN, LOOP], ids=["code that swallows exceptions", "a busy event loop"])
def test_a_second_signal_ends_at_once(tmp_path: Path, model: str) -> None:
    words, seconds = interrupted(tmp_path, model, 20, 2)
    assert words == ["interrupted", "2", "True", "0"]
    assert seconds < 10


@pytest.mark.parametrize("model", [STUBBORN, LOOP], ids=["code that swallows exceptions", "a busy event loop"])
def test_the_end_of_the_grace_time_ends_at_once(tmp_path: Path, model: str) -> None:
    words, seconds = interrupted(tmp_path, model, 0.3, 1)
    assert words == ["interrupted", "2", "True", "0"]
    assert seconds < 10


def test_handlers_are_put_back_and_the_alarm_is_off() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    stopped: list[int] = []
    with Interrupts(lambda: stopped.append(1), 60.0) as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert (stopped, interrupts.signal_number) == ([1], signal.SIGTERM)
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)] == before


def test_the_end_is_no_exception_that_foreign_code_catches() -> None:
    assert not issubclass(EndNow, Exception)


def test_outside_the_main_thread_nothing_is_touched() -> None:
    before = signal.getsignal(signal.SIGINT)
    inside: list[object] = []

    def enter() -> None:
        with Interrupts(lambda: None, 1.0):
            inside.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert inside == [before]


def test_another_thread_may_set_the_grace_time_running() -> None:
    interrupts = Interrupts(lambda: None, 0.1)
    later = threading.Timer(0.05, interrupts.end_soon)
    later.start()
    with pytest.raises(EndNow), interrupts:
        time.sleep(10)
    later.join()
    assert interrupts.signal_number is None


def test_after_the_end_nothing_is_set_running() -> None:
    interrupts = Interrupts(lambda: None, 0.05)
    with interrupts:
        pass
    interrupts.end_soon()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
