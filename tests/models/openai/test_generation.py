"""Generation options as fields of the request."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from lmms_eval.models.remote.generation import Dialect, local_stops, map_generation, taken_by
from tests.cases import for_each

OPEN = Dialect(1024, is_reasoning=False, is_public=False)
PUBLIC = Dialect(1024, is_reasoning=False, is_public=True)
REASONING = Dialect(1024, is_reasoning=True, is_public=True)


@for_each(
    ("options", "fields"),
    [
        ({}, {"max_tokens": 1024, "temperature": 0}),
        ({"max_new_tokens": 5, "temperature": 0, "do_sample": False}, {"max_tokens": 5, "temperature": 0}),
        ({"max_new_tokens": 5.0}, {"max_tokens": 5, "temperature": 0}),
        ({"max_tokens": 7}, {"max_tokens": 7, "temperature": 0}),
        ({"temperature": 0.7, "do_sample": False}, {"max_tokens": 1024, "temperature": 0}),
        ({"temperature": 0.7, "top_p": 0.9}, {"max_tokens": 1024, "temperature": 0.7, "top_p": 0.9, "seed": 9}),
        ({"do_sample": True}, {"max_tokens": 1024, "seed": 9}),
        ({"do_sample": True, "seed": 2**40 + 3}, {"max_tokens": 1024, "seed": 3}),
        ({"temperature": 0, "top_p": 0.9, "do_sample": True}, {"max_tokens": 1024, "temperature": 0}),
        ({"until": "END"}, {"max_tokens": 1024, "temperature": 0, "stop": ["END"]}),
        ({"until": ["a", "", "b", "a"], "stop": "c"}, {"max_tokens": 1024, "temperature": 0, "stop": ["a", "b", "c"]}),
        ({"until": list("abcdef")}, {"max_tokens": 1024, "temperature": 0, "stop": list("abcd")}),
        ({"n": 3, "num_beams": 1, "top_p": None}, {"max_tokens": 1024, "temperature": 0}),
        ({"presence_penalty": 1}, {"max_tokens": 1024, "temperature": 0, "presence_penalty": 1}),
        ({"extra_body": {"a": 1}}, {"max_tokens": 1024, "temperature": 0, "a": 1}),
        ({"extra_body": '{"a": 1}'}, {"max_tokens": 1024, "temperature": 0, "a": 1}),
        ({"max_new_tokens": "max"}, {"temperature": 0}),
    ],
)
def test_fields(options: dict[str, Any], fields: dict[str, Any]) -> None:
    assert map_generation(options, 9, OPEN) == (fields, ())


def test_reasoning_models_take_neither_temperature_nor_stop() -> None:
    options = {"max_new_tokens": 8, "temperature": 0.5, "until": ["x"]}
    assert map_generation(options, 9, REASONING)[0] == {"max_completion_tokens": 8}
    assert local_stops(options, REASONING) == ["x"]


def test_local_stops_are_those_that_were_not_sent() -> None:
    assert local_stops({"until": list("abcdef")}, OPEN) == ["e", "f"]
    assert local_stops({"until": ["a"]}, OPEN) == []


def test_options_of_open_servers_and_unknown_ones() -> None:
    options = {"top_k": 3, "image_aspect_ratio": "pad"}
    fields, ignored = map_generation(options, 0, OPEN)
    assert fields["top_k"] == 3 and ignored == ("image_aspect_ratio",)
    fields, ignored = map_generation(options, 0, PUBLIC)
    assert "top_k" not in fields and ignored == ("top_k", "image_aspect_ratio")


def test_unknown_options_go_to_servers_that_are_no_vendors_own() -> None:
    forwarding = structs.replace(OPEN, forwards=True)
    options = {"thinking_token_budget": 512, "num_beams": 4, "image_aspect_ratio": "pad", "max_gen_toks": 3, "n": 1}
    assert map_generation(options, 0, forwarding) == (
        {"max_tokens": 3, "temperature": 0, "thinking_token_budget": 512},
        ("image_aspect_ratio",),
    )
    assert map_generation({"thinking_token_budget": 512}, 0, OPEN)[1] == ("thinking_token_budget",)
    assert taken_by(forwarding).objection("num_beams", 4) and taken_by(forwarding).objection("odd", 4) == ""
    assert "sampling" in taken_by(REASONING).objection("temperature", 0.5)
