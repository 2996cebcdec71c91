"""What a run has cost, over kills, cache hits and judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Request, Response, Usage
from lmms_eval.errors import UsageError
from lmms_eval.evaluation.judge import model_names
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from tests.evaluation.judged_kit import rated_task
from tests.evaluation.kit import DOCUMENTS, Told, config, fails_on, right
from tests.servers.stub import StubServer

PRICES = "currency: EUR\nmodels:\n  told: {input: 1000000, output: 2000000}\n"


def counted(request: Request) -> Response:
    """Ten tokens in and two out for each request."""
    return Response(request.id, text=right(request).text, usage=Usage(10, 2))


def priced(tmp: Path, model: Told, text: str = PRICES, **over: Any) -> RunReport:
    (tmp / "prices.yaml").write_text(text)
    return run(config(tmp, model="told", prices=str(tmp / "prices.yaml"), **over), model)


def cost_of(report: RunReport) -> dict[str, Any]:
    return report.results["usage"]["cost"]


def test_the_results_and_the_lines_below_the_table_say_the_cost(tmp_path: Path) -> None:
    report = priced(tmp_path, Told(counted))
    cost = cost_of(report)
    assert cost["model"] == cost["total"] == DOCUMENTS * (10 + 2 * 2) and cost["judge"] == 0.0
    assert cost["currency"] == "EUR" and cost["price"].endswith("prices.yaml: told")
    (line,) = [line for line in report.lines if line.startswith("cost: ")]
    assert line.startswith("cost: 84.00 EUR for 60 tokens in and 12 out (price: ")


def test_prices_do_not_make_another_run_and_what_earlier_starts_have_paid_counts(tmp_path: Path) -> None:
    first = run(config(tmp_path, model="told"), Told(lambda r: fails_on(1, 4)(r) if r.doc_id in (1, 4) else counted(r)))
    assert first.exit_code == 3
    again = priced(tmp_path, Told(counted))
    assert again.results["timing"]["resumed"] == DOCUMENTS - 2
    assert cost_of(again)["total"] == DOCUMENTS * 14


def test_hits_of_the_cache_cost_nothing(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache.db")
    assert cost_of(priced(tmp_path, Told(counted), use_cache=cache, output_path=str(tmp_path / "a")))["total"] == 84
    report = priced(tmp_path, Told(counted), use_cache=cache, output_path=str(tmp_path / "b"))
    assert report.results["cache"]["hit"] == DOCUMENTS
    assert cost_of(report)["total"] == 0.0
    assert report.results["usage"]["total"]["input_tokens"] == 60


def test_a_model_that_tells_no_tokens_has_no_cost_of_0(tmp_path: Path) -> None:
    report = priced(tmp_path, Told())
    assert cost_of(report)["model"] is None and any("cost: not known" in line for line in report.lines)


def test_prices_without_the_model_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no price for the model 'told'; the table has: other"):
        priced(tmp_path, Told(), "models: {other: {input: 1, output: 1}}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("has_price", [True, False])
def test_the_judge_is_paid_for_apart(tmp_path: Path, has_price: bool) -> None:
    rated_task(tmp_path / "tasks", 3)
    text = PRICES + ("  jury: {input: 1000000, output: 1000000}\n" if has_price else "")
    with StubServer() as server:
        report = priced(
            tmp_path, Told(counted), text, tasks="rated", judge_model="jury", judge_base_url=server.url,
            judge_args="api_key=x",
        )  # fmt: skip
    cost, spent = cost_of(report), report.results["usage"]["by_source"]["judge"]
    assert cost["model"] == 3 * 14 and spent["total_tokens"] > 0
    if has_price:
        assert cost["judge"] == spent["total_tokens"] and cost["total"] == cost["model"] + cost["judge"]
    else:
        assert cost["judge"] is None and cost["total"] is None
        assert any(line.startswith("cost of the judge: price not known") for line in report.lines)


def test_names_under_which_a_model_is_looked_up(tmp_path: Path) -> None:
    assert model_names(config(tmp_path, model="openai", model_args="model=a/b,base_url=http://x")) == ("a/b", "openai")
    assert model_names(config(tmp_path, model="gpt4v")) == ("gpt-4o", "gpt4v")
