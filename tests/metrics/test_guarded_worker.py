from lmms_eval.metrics.guarded_worker import answer


def exhaust() -> None:
    raise MemoryError


JOBS = {"add": lambda one, other: one + other, "exhaust": exhaust}


def test_answers_name_errors() -> None:
    line = '{"job": "add", "args": [1, 2], "limit": 5}'
    assert answer(line, JOBS) == {"value": 3}
    assert answer(line.replace("add", "no_job"), JOBS)["error"].startswith("KeyError")
    assert answer(line.replace("2", '"2"'), JOBS)["error"].startswith("TypeError")
    assert answer('{"job": "exhaust", "args": [], "limit": 5}', JOBS) == {"memory": True}
