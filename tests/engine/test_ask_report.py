from __future__ import annotations

from lmms_eval.api.request import Response, ResponseError, Usage
from lmms_eval.engine.drive import AskReport
from tests.cases import for_each


@for_each("kind", ["document", "media"])
def test_documents_that_cannot_be_asked_say_nothing_about_the_model(kind: str) -> None:
    report = AskReport()
    for number in range(40):
        report.count(Response.failure(str(number), kind, "no picture"), 1)  # type: ignore[arg-type]
    assert (report.failed, report.unsent, report.sent, report.give_up) == (40, 40, 0, "")
    for number in range(16):
        report.count(Response.failure(str(number), "server_error", "502"), 1)
    assert report.give_up == "the first 16 requests all failed, the last with server_error: 502"
    assert (report.give_up_kind, report.sent) == ("server_error", 16)


def test_a_model_is_given_up_by_the_number_that_it_holds_open_and_never_after_a_success() -> None:
    wide, lucky = AskReport(), AskReport()
    lucky.count(Response("0", text="yes", usage=Usage(3, 2)), 1)
    for number in range(63):
        wide.count(Response.failure(str(number), "timeout", "slow"), 32)
        lucky.count(Response.failure(str(number), "timeout", "slow"), 1)
    assert wide.give_up == lucky.give_up == ""
    wide.count(Response.failure("63", "timeout", "slow"), 32)
    assert wide.give_up.startswith("the first 64 requests all failed")
    assert (lucky.answered, lucky.input_tokens, lucky.output_tokens) == (1, 3, 2)


def test_a_refused_key_is_enough() -> None:
    report = AskReport(answered=100)
    report.count(Response("0", error=ResponseError("auth", "HTTP 401")), 32)
    report.count(Response("1", error=ResponseError("auth", "another")), 32)
    assert (report.give_up, report.give_up_kind) == ("HTTP 401", "auth")
