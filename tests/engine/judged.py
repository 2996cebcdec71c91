"""A task whose answers are judged, and judges as scripted models."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.messages import ChatMessages, build_user_turn
from lmms_eval.api.model import Model
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.api.request import Request, Response, ResponseError
from lmms_eval.api.task import Answer, PipelineScore, ScoredDoc, Selection
from lmms_eval.engine.evaluate import EngineOptions, RunScores, evaluate
from lmms_eval.engine.judging import JudgementStore, JudgeSetup
from lmms_eval.engine.outcomes import AggregateOptions
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.response_cache import CacheKeys, ResponseCache
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.judges.providers import Judge, ScriptedJudge, register_script
from tests.engine.fakes import FakeTask

NAMES = ("form", "content")


class JudgedTask(FakeTask):
    """Two questions per document; the score is the mean of the judge's numbers."""

    is_judged = True

    def judge_questions(self, doc_id: int, answers: Sequence[Answer]) -> Sequence[JudgeQuestion]:
        if doc_id in self.unscorable:
            raise LookupError("no such criterion")
        return [
            JudgeQuestion(
                name, lambda text=f"{name} of {answers[0].value}": turn(text), str.isdigit, {"temperature": 0}
            )
            for name in NAMES
        ]

    def score(self, doc_id: int, answers: Sequence[Answer], verdicts: Sequence[Verdict] = ()) -> ScoredDoc:
        if not verdicts:
            raise NotEvaluated("a judge is needed")
        missing = [verdict.error for verdict in verdicts if verdict.text is None]
        if missing:
            raise NotEvaluated(f"the judge gave no reply: {missing[0]}")
        self.scored.append(doc_id)
        value = sum(int(v.text) if v.accepted and v.text else 0 for v in verdicts) / len(verdicts)
        return ScoredDoc("", {}, f"{doc_id:064x}", (PipelineScore("none", answers[0].value, {"acc": value}),))


def turn(text: str) -> ChatMessages:
    return ChatMessages(messages=build_user_turn(None, text))


class Script:
    """Replies by ``answer(text, attempt)``; keeps the ids asked."""

    def __init__(self, answer: Callable[[str, int], str | ResponseError] = lambda text, attempt: "1") -> None:
        self.answer = answer
        self.asked: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, messages: ChatMessages, request: Request) -> str | ResponseError:
        with self._lock:
            self.asked.append(request.id)
        return self.answer(messages.text(), request.repeat)


def scripted(script: Script, name: str = "script") -> Judge:
    register_script(name, script)
    return Judge(ScriptedJudge(name), name, "scripted")


def run(
    folder: Path,
    task: FakeTask,
    model: Model,
    judge: Judge | None,
    retries: int = 0,
    cache: ResponseCache | None = None,
    limits: StreamLimits | None = None,
    budget: float | None = None,
) -> RunScores:
    """One start; the scores hold for any judge, as if judges differed only by their journal of judgements."""
    store = RunStore(folder, "scoring")
    setup = None
    if judge is not None:
        keys = CacheKeys(judge.identity(), reads_documents=False)
        setup = JudgeSetup(
            judge.model,
            judge.name,
            JudgementStore(folder, keys),
            retries,
            limits or StreamLimits(),
            cache,
        )
    try:
        chosen = EngineOptions(aggregate=AggregateOptions(judge_error_budget=budget), grace_s=2.0, judge=setup)
        result = evaluate([plan_task(task, None, 0)], Selection((task,)), model, store, chosen)
        assert result is not None
        return result
    finally:
        store.close()
        if setup is not None:
            setup.store.close()


def failure(request: Request) -> Response:
    return Response.failure(request.id, "server_error", "HTTP 500")
