"""Budgets: a run ends when its budget is spent, resumes with a larger one, and counts its spending."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from lmms_eval.api.request import Request, Response, SentMedia, Usage
from lmms_eval.engine.records import RunSpending
from lmms_eval.engine.stopping import Budget, Limits
from lmms_eval.errors import ConfigError, UsageError
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.utils.prices import Spending
from tests.cases import for_each
from tests.evaluation.judged_kit import rated_task
from tests.evaluation.kit import NAME, Told, config, right, tasks
from tests.servers.stub import StubServer

DOCUMENTS = 30
EACH = 12
PRICES = "models:\n  counted: {input: 100000, output: 100000}\n  jury: {input: 100000, output: 100000}\n"


def counted(request: Request) -> Response:
    return Response(request.id, text=right(request).text, usage=Usage(10, 2))


def run_with(tmp: Path, model: Told, **over) -> RunReport:
    if not (tmp / "tasks").exists():
        tasks(tmp, DOCUMENTS)
    (tmp / "p.yaml").write_text(PRICES)
    return run(config(tmp, model="counted", **over), model)


def test_a_run_ends_at_its_budget_and_goes_on_with_a_larger_one(tmp_path) -> None:
    model = Told(counted)
    report = run_with(tmp_path, model, max_tokens=10 * EACH)
    assert report.exit_code == 3 and len(model.asked) == 10 and report.results["state"] == "withheld"
    assert report.results["results"][NAME]["exact_match,none"] is None
    outcome = report.results["outcomes"][NAME]
    assert outcome["not_asked"] == 20 and "not asked: the budget of 120 tokens is spent" in outcome["reasons"]
    assert any("the budget of 120 tokens is spent: 20 of 30 documents not asked" in line for line in report.lines)
    assert report.results["usage"]["budget_exceeded"] is True
    same, larger = Told(counted), Told(counted)
    assert run_with(tmp_path, same, max_tokens=10 * EACH).exit_code == 3 and same.asked == []
    done = run_with(tmp_path, larger, max_tokens=1000)
    assert done.exit_code == 0 and len(larger.asked) == 20 and done.results["usage"]["budget_exceeded"] is False


def test_a_budget_of_money(tmp_path) -> None:
    model = Told(counted)
    report = run_with(tmp_path, model, max_cost=6.0, prices=str(tmp_path / "p.yaml"))  # 1.20 for a document
    assert report.exit_code == 3 and len(model.asked) == 5
    assert any("the budget of 6.00 USD is spent: 25 of 30" in line for line in report.lines)


def test_hits_of_the_cache_do_not_count(tmp_path) -> None:
    cache = str(tmp_path / "cache.db")
    assert run_with(tmp_path, Told(counted), use_cache=cache, output_path=str(tmp_path / "a")).exit_code == 0
    again = Told(counted)
    report = run_with(tmp_path, again, use_cache=cache, output_path=str(tmp_path / "b"), max_tokens=EACH)
    assert report.exit_code == 0 and again.asked == []


@for_each(("media", "cost"), [({"type": "audio"}, None), ({"type": "audio", "seconds": 2.0}, 38.0)])
def test_a_sound_of_unknown_length_has_no_cost(tmp_path, media, cost) -> None:
    """30 documents of 12 tokens at 0.1, and of 2 seconds at 0.5 if their length is known."""

    def heard(request: Request) -> Response:
        return replace(counted(request), media=(SentMedia(**media),))

    tasks(tmp_path, DOCUMENTS)
    (tmp_path / "p.yaml").write_text("models:\n  counted: {input: 10000, output: 100000, audio_second: 0.5}\n")
    given = config(tmp_path, model="counted", prices=str(tmp_path / "p.yaml"))
    report = run(given, Told(heard))
    usage = report.results["usage"]["cost"]
    assert usage["model"] == usage["total"] == (None if cost is None else pytest.approx(cost + 1))
    is_said = "cost: not known, for 30 sounds of unknown length or whole videos were sent"
    assert any(line.startswith(is_said) for line in report.lines) == (cost is None)
    limited = config(
        tmp_path, model="counted", prices=str(tmp_path / "p.yaml"), max_cost=1000.0, output_path=str(tmp_path / "l")
    )
    model = Told(heard)
    report = run(limited, model)
    assert (report.exit_code, len(model.asked)) == ((3, 1) if cost is None else (0, DOCUMENTS))


def test_a_model_that_tells_no_tokens_is_not_asked_on(tmp_path) -> None:
    model = Told()
    report = run_with(tmp_path, model, max_tokens=1000)
    assert report.exit_code == 3 and len(model.asked) == 1
    assert any("the model does not report token counts" in line for line in report.lines)


@for_each("counts", [(10, None), (None, 2), (-10, 2), (10, -2), (10, 2.5), (2**60, 2), (True, 2)])
def test_counts_that_cannot_be_are_unknown_and_end_a_run_with_a_budget(tmp_path, counts) -> None:
    def odd(request: Request) -> Response:
        return replace(counted(request), usage=Usage(*counts))

    model = Told(odd)
    report = run_with(tmp_path, model, max_tokens=1000, output_path=str(tmp_path / "limited"))
    assert report.exit_code == 3 and len(model.asked) == 1
    (tmp_path / "p.yaml").write_text("models:\n  counted: {input: 10000, output: 100000}\n")
    free = run_with(tmp_path, Told(odd), prices=str(tmp_path / "p.yaml"), output_path=str(tmp_path / "free"))
    assert free.exit_code == 0
    assert free.results["usage"]["cost"]["total"] is None
    assert any("came without a count of their tokens" in line for line in free.lines)


def test_the_judges_tokens_count(tmp_path) -> None:
    rated_task(tmp_path / "tasks", DOCUMENTS)
    with StubServer() as server:
        judge = {"judge_model": "jury", "judge_base_url": server.url, "judge_args": "api_key=x,num_concurrent=1"}
        report = run_with(tmp_path, Told(counted), tasks="rated", max_tokens=DOCUMENTS * EACH + 60, **judge)
        assert report.exit_code == 3 and 0 < server.stats()["total"] < DOCUMENTS
        done = run_with(tmp_path, Told(counted), tasks="rated", max_tokens=10**6, **judge)
    assert done.exit_code == 0 and done.results["outcomes"]["rated"]["scored"] == DOCUMENTS


def test_bad_input(tmp_path) -> None:
    with pytest.raises(UsageError, match="--max_cost needs prices"):
        run_with(tmp_path, Told(), max_cost=1)
    for name in ("max_tokens", "max_cost"):
        with pytest.raises(ConfigError, match=f"--{name}: must be at least"):
            run_with(tmp_path, Told(), **{name: -1})


def test_processes_count_each_others_spending_and_a_shared_journal_once() -> None:
    earlier = RunSpending(Spending(100, 0))
    first, other = Budget(Limits(150), earlier), Budget(Limits(150), earlier, counts_earlier=False)
    reasons: list[str] = []
    other.watch(reasons.append)
    first.note_model(Response("a", text="", usage=Usage(20, 5)))
    other.add_others(first.counts())
    other.note_model(Response("b", text="", usage=Usage(20, 4)))
    assert reasons == []  # 100 + 25 + 24
    other.note_model(Response("c", text="", usage=Usage(1, 0)))
    assert reasons == ["the budget of 150 tokens is spent"]


def test_spending_is_published_early_if_it_is_a_large_part_of_what_is_left() -> None:
    """The remaining budget divided by 64; nothing is published for a response that cost nothing."""
    budget, published = Budget(Limits(1000), RunSpending()), 0

    def exchange() -> None:
        nonlocal published
        published += 1

    def publishes(tokens: int) -> bool:
        before = published
        usage = Usage(tokens, 0) if tokens else None
        budget.note_model(Response("a", text="", usage=usage) if usage else Response.failure("a", "timeout", "late"))
        return published > before

    budget.begin(exchange)
    assert [publishes(10) for _ in range(4)] == [False, True, False, True]
    budget.add_others({"model_input_tokens": 900})
    assert [publishes(1), publishes(59), publishes(0)] == [True, True, False]
    assert budget.reason == "the budget of 1,000 tokens is spent"
