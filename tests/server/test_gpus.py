from __future__ import annotations

import pytest

from lmms_eval.errors import RequestError
from lmms_eval.server.scheduler import Room
from tests.cases import for_each


@for_each(
    ("request_", "held", "found"),
    [
        ({}, [], ("0",)),
        ({"num_gpus": 2}, [("1",)], ("0", "2")),
        ({"num_gpus": 2}, [("1",), ("0",)], None),
        ({"device": "cpu"}, [("0", "1", "2")], ()),
        ({"device": "cuda"}, [("0",)], ("1",)),
        ({"device": "cuda:2"}, [("0",)], ("2",)),
        ({"device": "cuda:0"}, [("0",)], None),
        ({}, [("0",), (), ()], None),
    ],
)
def test_a_run_gets_what_is_free_and_what_it_names(request_, held, found):
    assert Room(("0", "1", "2"), 3).find(request_, held) == found


@for_each("request_", [{"num_gpus": 3}, {"device": "cuda:7"}, {"device": "cuda:0", "num_gpus": 2}])
def test_what_never_fits_is_refused(request_):
    with pytest.raises(RequestError):
        Room(("0", "1"), 2).check(request_)


@for_each("seen", [0, 1, 4])
def test_a_run_asks_for_no_more_gpus_than_there_are(seen):
    room = Room(seen=seen)
    room.check({"num_gpus": max(1, seen)})
    room.check({})
    for count in (max(1, seen) + 1, 1_000_000, 1 << 62):
        with pytest.raises(RequestError, match=f"sees {seen} GPUs"):
            room.check({"num_gpus": count})


@for_each("name", ["media_workers", "score_workers"])
def test_a_run_asks_for_no_more_workers_than_the_cores_take(name):
    Room(cores=2).check({name: 16})
    Room(cores=2).check({name: None})
    with pytest.raises(RequestError, match=f"{name}: 2 cores of this server take 16"):
        Room(cores=2).check({name: 1_000_000})


def test_a_server_that_gives_out_none_shows_what_it_sees():
    assert Room().find({"num_gpus": 4}, []) == ()
    assert Room().visible(()) is None
    assert Room(("0",)).visible(()) == ()
