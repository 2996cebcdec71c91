"""A small task and a stream for tests of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmms_eval.api.messages import ChatMessages, build_user_turn
from lmms_eval.api.model import Model
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Exchange, ScoredDoc, Task


class FakeTask(Task):
    """Documents are mappings with ``question`` and ``answer``; likelihood tasks have ``choices``."""

    def __init__(
        self, docs: Sequence[dict[str, Any]], name: str = "fake", output_type: str = "generate_until", repeats: int = 1
    ) -> None:
        self.docs = list(docs)
        self.name = self.alias = name
        self.output_type = output_type  # type: ignore[assignment]
        self.repeats = repeats
        self.split = "test"
        self.data_sets_opened = 0

    def load(self) -> None:
        pass

    def __len__(self) -> int:
        return len(self.docs)

    def exchange(self, doc_id: int, repeat: int) -> Exchange:
        raise AssertionError("models do not ask tasks for exchanges")

    def costs(self, doc_ids: Sequence[int]) -> Sequence[float]:
        return [1.0] * len(doc_ids)

    def score(self, doc_id: int, answers: Sequence[Any], verdicts: Sequence[Any] = ()) -> ScoredDoc:
        raise AssertionError("models do not score")

    def describe(self) -> dict[str, Any]:
        return {}

    def fingerprint(self) -> dict[str, str]:
        return {}

    def spec(self) -> dict[str, Any]:
        return {}

    def dataset_dict(self) -> dict[str, list[dict[str, Any]]]:
        self.data_sets_opened += 1
        return {self.split: self.docs}

    def target(self, doc_id: int) -> Any:
        return self.docs[doc_id]["answer"]

    def legacy_arguments(self, request: Request, chat: bool) -> tuple[Any, ...]:
        where = (request.doc_id, self.name, self.split)
        generation = dict(request.generation)
        if request.kind == "loglikelihood":
            return (request.context, request.continuation, lambda doc: [], *where)
        if chat:
            return (request.context, lambda doc: build_user_turn(None, doc["question"]), generation, *where)
        if request.kind == "generate_until_multi_round":
            return (request.context, generation, lambda doc: [], lambda doc: doc["question"], *where)
        return (request.context, generation, lambda doc: [], *where)

    def legacy_metadata(self, request: Request) -> dict[str, Any]:
        return {"task": self.name, "doc_id": request.doc_id, "repeats": self.repeats, "split": self.split}

    def request(self, doc_id: int, repeat: int = 0, **extra: Any) -> Request:
        question = self.docs[doc_id]["question"]
        fields = {"kind": "generate_until", "context": question, "generation": {"until": ["\n"]}, **extra}
        identifier = f"{self.name}/{doc_id}/{repeat}/{extra.get('round', 0)}/{extra.get('index', 0)}"

        def build_messages() -> ChatMessages:
            return ChatMessages.model_validate({"messages": build_user_turn(None, question)})

        return Request(id=identifier, task=self, doc_id=doc_id, repeat=repeat, build_messages=build_messages, **fields)  # type: ignore[arg-type]

    def requests(self) -> list[Request]:
        return [self.request(doc_id, repeat) for doc_id in range(len(self)) for repeat in range(self.repeats)]

    def choice_requests(self, doc_id: int) -> list[Request]:
        choices = self.docs[doc_id]["choices"]
        return [
            self.request(doc_id, kind="loglikelihood", continuation=f" {choice}", index=index)
            for index, choice in enumerate(choices)
        ]


class ListStream:
    """All requests are ready from the start."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.waiting = list(requests)
        self.asked: list[int] = []

    def take(self, max_n: int) -> list[Request]:
        self.asked.append(max_n)
        taken, self.waiting = self.waiting[:max_n], self.waiting[max_n:]
        return taken

    async def take_async(self, max_n: int) -> list[Request]:
        return self.take(max_n)


def answers(model: Model, requests: Sequence[Request]) -> dict[str, Response]:
    """Ask a synchronous model everything; every request must be answered exactly once."""
    stream = ListStream([model.prepare(request) for request in requests])
    given = list(model.respond(stream))  # type: ignore[arg-type]
    found = {response.request_id: response for response in given}
    assert len(found) == len(given) == len(requests)
    return found
