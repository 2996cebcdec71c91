from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.config import task_config
from lmms_eval.tasks.yaml.settings import (
    generation_options,
    implied_stop,
    recorded_generation,
    recorded_specific_kwargs,
    shots,
    specific_kwargs,
    target_kwargs,
)
from tests.cases import for_each
from tests.tasks.kit import BASE

STATED = {"default": {"pre": "d"}, "known": {"pre": "k"}}


@for_each(
    ("stated", "name", "canonical", "wanted"),
    [
        (None, "known", "", None),
        (STATED, "known", "", {"pre": "k"}),
        (STATED, "alias", "known", {"pre": "k"}),
        (STATED, "other", "", {**STATED, "pre": "d"}),
        ({"dataset": {"x": 1}}, "other", "", {"dataset": {"x": 1}, "x": 1}),
        ({"x": 1}, "other", "", {"x": 1}),
    ],
)
def test_prompt_settings_of_a_model(stated: Any, name: str, canonical: str, wanted: Any) -> None:
    options = TaskOptions(model_name=name, model_id=canonical)
    assert specific_kwargs(config(lmms_eval_specific_kwargs=stated), options) == wanted
    recorded = recorded_specific_kwargs(stated, options)
    assert recorded == (wanted if stated is None or wanted != {"pre": "k"} else stated)


@for_each(("name", "wanted"), [("known", {"pre": "x", "n": 1}), ("other", {**STATED, "pre": "x", "n": 1})])
def test_settings_of_the_command_line_beat_those_of_the_task(name: str, wanted: Any) -> None:
    options = TaskOptions(model_name=name, task_kwargs={"pre": "x", "n": 1})
    assert specific_kwargs(config(lmms_eval_specific_kwargs=STATED), options) == wanted
    assert specific_kwargs(config(), options) == recorded_specific_kwargs(None, options) == {"pre": "x", "n": 1}
    assert recorded_specific_kwargs(STATED, options) == {**STATED, "pre": "x", "n": 1}


def config(**changes: Any) -> Any:
    return task_config({**BASE, **changes}, "x.yaml")


def test_options_of_the_run_are_given_to_tasks_that_ask_for_them() -> None:
    options = TaskOptions(run_options={"geocoder": "nominatim", "human_scores": "/h.csv"})
    assert specific_kwargs(config(), options) is None
    asks = config(run_options=["geocoder", "nltk_data"], lmms_eval_specific_kwargs={"x": 1})
    assert specific_kwargs(asks, options) == {"x": 1, "geocoder": "nominatim"}
    assert specific_kwargs(config(run_options=["human_scores"]), options) == {"human_scores": "/h.csv"}
    with pytest.raises(TaskError, match=r"run_options: there is no 'model'; there is: judge_prompts, .*geocoder"):
        specific_kwargs(config(run_options=["model"]), options)


def test_generation_defaults() -> None:
    assert generation_options(config(), TaskOptions()) == {"do_sample": False}
    made = generation_options(config(generation_kwargs={"max_new_tokens": 4, "temperature": 0}), TaskOptions())
    assert made == {"max_new_tokens": 4, "temperature": 0.0}
    assert isinstance(made["temperature"], float)
    choice = config(output_type="multiple_choice", doc_to_choice=["a"])
    assert generation_options(choice, TaskOptions(gen_kwargs={"a": 1})) == {}
    with pytest.raises(TaskError, match="temperature"):
        generation_options(config(generation_kwargs={"temperature": "hot"}), TaskOptions())


@for_each("until", [None, [], "", "\n", ["a", "b"]])
def test_the_delimiter_is_implied_where_no_one_states_a_stop(until: Any) -> None:
    for stated, options in [
        (config(fewshot_delimiter="##", generation_kwargs={"until": until}), TaskOptions()),
        (config(fewshot_delimiter="##"), TaskOptions(gen_kwargs={"until": until})),
        (
            config(fewshot_delimiter="##", model_specific_generation_kwargs={"m": {"until": until}}),
            TaskOptions(model_name="m"),
        ),
    ]:
        made = generation_options(stated, options)
        assert made["until"] == until
        assert implied_stop(stated, made) == ""
        assert recorded_generation(stated, made) == made
    silent = config(fewshot_delimiter="##", generation_kwargs={"max_new_tokens": 3})
    made = generation_options(silent, TaskOptions(gen_kwargs={"temperature": 1}))
    assert implied_stop(silent, made) == "##"
    assert recorded_generation(silent, made) == {"max_new_tokens": 3, "temperature": 1.0, "until": ["##"]}
    choice = config(output_type="multiple_choice", doc_to_choice=["a"])
    assert (implied_stop(choice, {}), recorded_generation(choice, {})) == ("", None)


def test_options_of_the_model_and_of_the_command_line() -> None:
    made = config(
        generation_kwargs={"max_new_tokens": 4, "top_p": 1},
        model_specific_generation_kwargs={"default": {"max_new_tokens": 5}, "m": {"max_new_tokens": 6}},
    )
    assert generation_options(made, TaskOptions())["max_new_tokens"] == 5
    assert generation_options(made, TaskOptions(model_name="m"))["max_new_tokens"] == 6
    over = generation_options(made, TaskOptions(model_name="m", gen_kwargs={"max_new_tokens": 7, "until": ["x"]}))
    assert over == {"max_new_tokens": 7, "top_p": 1, "until": ["x"]}
    assert made.generation_kwargs == {"max_new_tokens": 4, "top_p": 1}


def test_target_settings() -> None:
    assert target_kwargs({"default": 1, "m": 2}, TaskOptions(model_name="m")) == 2
    assert target_kwargs({"default": 1, "m": 2}, TaskOptions()) == 1
    assert target_kwargs(None, TaskOptions()) is None


@for_each(("stated", "asked", "wanted"), [(None, None, 0), (None, 2, 2), (3, None, 3), (3, 1, 1), (0, 5, 0), (3, 0, 0)])
def test_zero_shots_in_the_task_forbid_others(stated: int | None, asked: int | None, wanted: int) -> None:
    assert shots(config(num_fewshot=stated), TaskOptions(num_fewshot=asked)) == wanted


GREEDY = {"max_new_tokens": 16, "temperature": 0, "do_sample": False, "until": ["X"]}


@for_each(
    ("stated", "wanted"),
    [
        ({"temperature": 0.7}, {**GREEDY, "temperature": 0.7, "do_sample": True}),
        ({"temperature": 0.7, "do_sample": False}, {**GREEDY, "temperature": 0.7}),
        ({"max_tokens": 9}, {**GREEDY, "max_new_tokens": 9}),
        ({"stop": "END"}, {**GREEDY, "until": "END"}),
        ({"until": []}, {**GREEDY, "until": []}),
        ({"top_k": 4}, {**GREEDY, "top_k": 4}),
    ],
    ids=str,
)
def test_what_the_command_line_states_has_an_effect(stated: Any, wanted: Any) -> None:
    made = generation_options(config(generation_kwargs=GREEDY), TaskOptions(gen_kwargs=stated))
    assert made == wanted


def test_plugins_get_the_options_as_the_reference_hands_them_over() -> None:
    stated = {"temperature": 0.7, "max_tokens": 9}
    made = generation_options(config(generation_kwargs=GREEDY), TaskOptions(gen_kwargs=stated, legacy=True))
    assert made == {**GREEDY, **stated}


def test_sampling_at_no_temperature_is_refused() -> None:
    with pytest.raises(TaskError, match="state a temperature"):
        generation_options(config(generation_kwargs=GREEDY), TaskOptions(gen_kwargs={"do_sample": True}))
