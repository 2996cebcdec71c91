import random
import threading
import time
from collections import deque
from types import SimpleNamespace

import pytest
import torch
from msgspec.structs import replace

from lmms_eval.engine.stream import Stream, StreamLimits
from lmms_eval.models.hf.batching import RefusedError, Shape
from lmms_eval.models.hf.encode import Lookahead, Window
from lmms_eval.models.hf.inputs import Prepared, PreparedRequest
from lmms_eval.models.hf.model import HuggingFace
from lmms_eval.models.hf.settings import GenerationSettings

from .support import ask, build


class FakeEncoder:
    """Notes which thread encodes what; ``slow`` seconds each."""

    def __init__(self, log, slow=0.0):
        self.log, self.slow, self.busy = log, slow, False

    def encode(self, jobs):
        assert not self.busy, "an encoder is used by one thread at a time"
        self.busy = True
        time.sleep(self.slow)
        self.log.append((threading.current_thread().name, [job.request.doc_id for job in jobs]))
        self.busy = False
        if any(job.prepared.text == "bad" for job in jobs):
            raise RefusedError("bad")
        return [job.request.doc_id for job in jobs]


def job(number, tokens=10.0, key="a", text=""):
    settings = GenerationSettings(key, {}, (), False, True)
    return PreparedRequest(ask(number, "Hi").with_payload(None, 7), Prepared(text, tokens=tokens), settings)


def shape(rows=2):
    return Shape(lambda item: item.key, lambda item: item.tokens, rows)


def numbers(batch):
    return [item.request.doc_id for item in batch]


def test_batches_are_encoded_ahead_in_other_threads():
    log = []
    ahead = Lookahead([FakeEncoder(log, 0.01), FakeEncoder(log, 0.01)])
    window = Window(shape, ahead)
    for number in range(7):
        window.add(job(number))
    assert (len(window), window.nbytes) == (7, 49)
    got = []
    while batch := window.next_batch():
        assert ahead.get(batch) == numbers(batch)
        got.append(numbers(batch))
    ahead.close()
    assert got == [[0, 1], [2, 3], [4, 5], [6]]
    assert all(name.startswith("hf-encode") for name, _ in log)


def test_a_part_filled_batch_waits_for_its_turn():
    ahead = Lookahead([FakeEncoder([])])
    window = Window(lambda: shape(3), ahead)
    for number in range(4):
        window.add(job(number))
    assert numbers(window.next_batch()) == [0, 1, 2]
    window.add(job(4))
    assert numbers(window.next_batch()) == [3, 4]
    ahead.close()


def test_errors_come_when_the_batch_is_asked_for():
    ahead = Lookahead([FakeEncoder([])])
    jobs = [job(0, text="bad")]
    ahead.start(jobs)
    with pytest.raises(RefusedError):
        ahead.get(jobs)
    assert ahead.get([job(1)]) == [1], "what was not started is encoded at once"
    ahead.close()


def test_planning_anew_keeps_the_order_and_loses_nothing():
    rows = [4]
    ahead = Lookahead([FakeEncoder([]), FakeEncoder([])])
    window = Window(lambda: shape(rows[0]), ahead)
    for number in range(12):
        window.add(job(number))
    assert numbers(window.next_batch()) == [0, 1, 2, 3]
    rows[0] = 2
    window.plan_anew()
    assert len(window) == 8
    left = []
    while batch := window.next_batch():
        ahead.get(batch)
        left.append(numbers(batch))
    assert left == [[4, 5], [6, 7], [8, 9], [10, 11]]
    ahead.close()


class Rounds:
    """A stream with one conversation: each further request is ready only when the one before is answered."""

    def __init__(self, requests, ready=1):
        self.later = deque(requests)
        self.ready = deque(self.later.popleft() for _ in range(ready))
        self.open = 0
        self.stopped = False

    def take(self, max_n):
        assert self.ready or not self.open, "would wait for ever: answers are outstanding"
        return self.take_full(max_n)

    def take_full(self, max_n):
        if self.stopped:
            return None
        taken = [self.ready.popleft() for _ in range(min(max_n, len(self.ready)))]
        self.open += len(taken)
        return taken

    def answered(self):
        self.open -= 1
        if self.later:
            self.ready.append(self.later.popleft())


@pytest.mark.parametrize("ready", [1, 3])
def test_rounds_that_follow_from_answers_do_not_block(tiny, ready):
    model = build(tiny, batch_size=2)
    stream = Rounds([model.prepare(ask(number, "What?")) for number in range(7)], ready)
    seen = []
    for response in model.respond(stream):
        seen.append(response.request_id)
        stream.answered()
    assert len(set(seen)) == 7


def test_what_is_held_when_the_stream_stops_is_left_unasked(tiny):
    model = build(tiny, batch_size=2)
    stream = Rounds([model.prepare(ask(number, "What?")) for number in range(8)], ready=8)
    seen = []
    for response in model.respond(stream):
        seen.append(response.request_id)
        stream.stopped = True
    assert len(seen) == 2


def test_encoding_overlaps_generation(tiny):
    """While one batch generates the next is encoded: its encoding begins before the generation ends."""
    events = []

    class Watched(HuggingFace):
        class encoder(HuggingFace.encoder):
            def encode(self, jobs):
                events.append(("encode", threading.current_thread().name))
                return super().encode(jobs)

        def generate(self, **arguments):
            events.append(("generate", threading.current_thread().name))
            time.sleep(0.05)
            return super().generate(**arguments)

    model = build(tiny, Watched, batch_size=2, preprocess_workers=2)
    requests = [model.prepare(ask(number, "What?", max_new_tokens=2)) for number in range(8)]
    stream = Rounds(requests, ready=8)
    for _ in model.respond(stream):
        stream.answered()
    second = [place for place, (kind, _) in enumerate(events) if kind == "generate"][1]
    assert sum(kind == "encode" for kind, _ in events[:second]) >= 2
    assert {name.startswith("hf-encode") for kind, name in events if kind == "encode"} == {True}
    model.close()


class Composing(HuggingFace):
    """Notes the requests of each generation, and answers with nothing."""

    def _run(self, batch, window):
        self.composition = [*getattr(self, "composition", []), sorted(numbers(batch))]
        yield from super()._run(batch, window)

    def generate(self, **arguments):
        ids = arguments["input_ids"]
        return torch.cat([ids, torch.full((len(ids), 1), self.loaded.tokenizer.eos_token_id)], dim=1)


def composition(model, requests, delay):
    """The requests of each generation when each preparation takes ``delay()`` seconds."""

    def prepare(request):
        time.sleep(delay())
        return model.prepare(request)

    model.composition = []
    stream = Stream(iter(requests), prepare, lambda request, error: None, lambda: False, StreamLimits(threads=3))
    stream.start()
    try:
        for response in model.respond(stream):
            stream.answered(response.request_id)
    finally:
        stream.close()
    return model.composition


def test_batches_do_not_depend_on_how_long_preparation_takes(tiny):
    model = build(tiny, Composing, batch_size=8)
    task = SimpleNamespace(name="task")
    asked = [ask(number, "water " * (1 + number * 7 % 23), max_new_tokens=1) for number in range(96)]
    requests = [replace(request, task=task) for request in asked]
    delays = random.Random(0)
    seen = [composition(model, requests, lambda: delays.random() * 0.002) for _ in range(20)]
    assert [len(batch) for batch in seen[0]] == [8] * 12
    assert seen == [seen[0]] * 20
    model.close()
