"""A small task and small models for tests of the engine, in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.api.judging import Verdict
from lmms_eval.api.messages import ChatMessages, build_user_turn
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response, Usage
from lmms_eval.api.task import Answer, Exchange, MetricDefinition, PipelineScore, ScoredDoc, Task


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


class EchoExchange(Exchange):
    """``rounds`` questions in sequence; the answer is the last text, or the list of all texts."""

    def __init__(self, task: FakeTask, doc_id: int, repeat: int) -> None:
        self.task, self.doc_id, self.repeat = task, doc_id, repeat
        self.responses: list[Response] = []

    def _request(self) -> Request:
        text = f"question {self.doc_id} round {len(self.responses)}"
        return Request(
            id=f"{self.task.name}/{self.doc_id}/{self.repeat}/{len(self.responses)}/0",
            kind="generate_until",
            task=self.task,
            doc_id=self.doc_id,
            build_messages=lambda: ChatMessages.model_validate({"messages": build_user_turn(None, text)}),
            context=text,
            repeat=self.repeat,
            round=len(self.responses),
        )

    def open(self) -> Sequence[Request]:
        if self.doc_id in self.task.broken_docs:
            raise KeyError("no such column")
        return [self._request()]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        self.responses += responses
        return [] if len(self.responses) >= self.task.rounds else [self._request()]

    def answer(self) -> Answer:
        texts = [response.text for response in self.responses]
        return Answer(
            value=texts[-1] if self.task.rounds == 1 else texts,
            usage=tuple(response.usage for response in self.responses),
            finish_reason=self.responses[-1].finish_reason,
            input=f"question {self.doc_id} round 0",
        )


class FakeTask(Task):
    """``size`` documents; an answer is right if it is ``answer ID``. ``broken_docs`` raise when they are rendered,
    ``unscorable`` when they are scored."""

    def __init__(
        self,
        size: int = 10,
        name: str = "fake",
        repeats: int = 1,
        rounds: int = 1,
        broken_docs: Sequence[int] = (),
        unscorable: Sequence[int] = (),
    ) -> None:
        self.size, self.name, self.repeats, self.rounds = size, name, repeats, rounds
        self.broken_docs, self.unscorable = set(broken_docs), set(unscorable)
        self.alias, self.version, self.output_type, self.num_fewshot = name, 1.0, "generate_until", 0
        self.metrics = (MetricDefinition("acc", mean, "mean", True),)
        self.pipelines = ("none",)
        self.scoring = "inline"
        self.cluster_key, self.score_key, self.split = None, "score", "test"
        self.scored: list[int] = []

    def load(self) -> None:
        """Nothing to open."""

    def __len__(self) -> int:
        return self.size

    def exchange(self, doc_id: int, repeat: int) -> Exchange:
        return EchoExchange(self, doc_id, repeat)

    def costs(self, doc_ids: Sequence[int]) -> Sequence[float]:
        return [1.0 for _ in doc_ids]

    def score(self, doc_id: int, answers: Sequence[Answer], verdicts: Sequence[Verdict] = ()) -> ScoredDoc:
        if doc_id in self.unscorable:
            raise ZeroDivisionError("cannot score this")
        self.scored.append(doc_id)
        values = [float(answer.value == f"answer {doc_id}") for answer in answers]
        per_answer = tuple({"acc": value} for value in values) if len(values) > 1 else ()
        row = PipelineScore("none", answers[0].value, {"acc": mean(values)}, per_answer=per_answer)
        return ScoredDoc(f"answer {doc_id}", {"question": f"question {doc_id}"}, f"{doc_id:064x}", (row,))

    def describe(self) -> dict[str, Any]:
        return {"task": self.name}

    def fingerprint(self) -> Mapping[str, str]:
        return {"config": self.name}

    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name}

    def dataset_dict(self) -> Any:
        return {}


def right_answer(request: Request) -> Response:
    return Response(request.id, text=f"answer {request.doc_id}", finish_reason="stop", usage=Usage(3, 2, None))


class FakeModel(Model):
    """Answers with ``answer(request)``; ``batch`` requests are taken at a time. ``asked`` keeps every id taken."""

    def __init__(self, answer: Any = right_answer, batch: int = 4) -> None:
        self.answer, self.batch = answer, batch
        self.concurrency = batch
        self.asked: list[str] = []

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(self.batch):
            self.asked += [request.id for request in requests]
            for request in requests:
                yield self.answer(request)
