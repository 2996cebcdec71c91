import io
import json

from lmms_eval.metrics.guarded_worker import answer, serve


def exhaust() -> None:
    raise MemoryError


JOBS = {"add": lambda one, other: one + other, "exhaust": exhaust}


def test_answers_name_errors() -> None:
    line = '{"job": "add", "args": [1, 2], "limit": 5}'
    assert answer(line, JOBS) == {"value": 3}
    assert answer(line.replace("add", "no_job"), JOBS)["error"].startswith("KeyError")
    assert answer(line.replace("2", '"2"'), JOBS)["error"].startswith("TypeError")
    assert answer('{"job": "exhaust", "args": [], "limit": 5}', JOBS) == {"memory": True}


def test_replies_follow_the_readiness_line_by_line() -> None:
    replies = io.StringIO()
    serve(io.StringIO('{"job": "add", "args": [1, 2], "limit": 5}\n' * 2), replies, JOBS)
    assert [json.loads(line) for line in replies.getvalue().splitlines()] == [
        {"ready": True},
        {"value": 3},
        {"value": 3},
    ]
