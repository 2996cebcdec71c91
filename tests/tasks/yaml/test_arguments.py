"""Misspelt and wrong arguments of metrics and of generation end a run before anything is asked."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.api.registry import METRICS, register_metric
from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import TaskError, UsageError
from lmms_eval.tasks.yaml.config import task_config
from lmms_eval.tasks.yaml.metrics import task_metrics
from lmms_eval.tasks.yaml.settings import GENERATION_OPTIONS, check_generation, generation_options, nearest
from tests.cases import for_each
from tests.tasks.kit import BASE


def metrics(entry: dict[str, Any], **changes: Any) -> Any:
    config = task_config({**BASE, **changes, "metric_list": [entry]}, "x.yaml")
    return task_metrics(config, predict_only=False, where="x.yaml")


@for_each(
    ("name", "wanted"),
    [
        ("max_new_token", "max_new_tokens"), ("tempertaure", "temperature"), ("top-p", "top_p"),
        ("num_beam", "num_beams"), ("untill", "until"), ("do_samples", "do_sample"),
        ("repetitionpenalty", "repetition_penalty"),
    ],
)  # fmt: skip
def test_a_misspelt_generation_option_is_told_the_nearest(name: str, wanted: str) -> None:
    with pytest.raises(TaskError, match=f"^task probe: unknown generation option '{name}'; did you mean '{wanted}'"):
        generation_options(task_config({**BASE, "generation_kwargs": {name: 1}}, "x.yaml"), TaskOptions())
    with pytest.raises(UsageError, match=f"^--gen_kwargs: unknown generation option '{name}'; did you mean '{wanted}'"):
        generation_options(task_config(BASE, "x.yaml"), TaskOptions(gen_kwargs={name: 1}))


@for_each(
    "name",
    [*GENERATION_OPTIONS, "modalities", "max_num_frames", "fps", "image_size", "enable_thinking", "thinking_budget",
     "max_steps", "stop_words", "temperature_last", "max_pixels", "num_frames", "use_audio_in_video"],
)  # fmt: skip
def test_options_of_plugins_and_engines_pass(name: str) -> None:
    assert nearest(name, GENERATION_OPTIONS) in ("", name)
    check_generation({name: None}, "task probe")


@for_each(
    ("name", "value", "wanted"),
    [
        ("max_new_tokens", "sixteen", "a whole number from 1 on"), ("max_new_tokens", 0, "a whole number from 1 on"),
        ("max_new_tokens", True, "a whole number"), ("top_k", 1.5, "a whole number"), ("top_p", "high", "a number"),
        ("temperature", [1], "a number"), ("do_sample", "false", "true or false"), ("until", 5, "a text or a list"),
        ("until", ["a", 5], "a text or a list"), ("num_beams", float("inf"), "a whole number"),
    ],
)  # fmt: skip
def test_a_generation_option_of_a_wrong_kind(name: str, value: Any, wanted: str) -> None:
    with pytest.raises(TaskError, match=f"^task probe: generation option '{name}' must be {wanted}"):
        check_generation({name: value}, "task probe")


def test_values_as_files_and_command_lines_write_them() -> None:
    given = {"max_new_tokens": 16.0, "temperature": "1e-3", "top_k": -1.0, "do_sample": 0, "until": [], "stop": "x"}
    check_generation(given, "t")
    with pytest.raises(TaskError, match="'num_beams' must be"):  # the last one, behind all that passed
        check_generation({**given, "num_beams": "many"}, "t")


@for_each(
    ("entry", "message"),
    [
        ({"metric": "exact_match", "ignorecase": True}, "has no argument 'ignorecase'; did you mean 'ignore_case'"),
        ({"metric": "exact_match", "agregation": "mean"}, "no argument 'agregation'; did you mean 'aggregation'"),
        ({"metric": "exact_match", "weights": [1]}, "no argument 'weights'; it takes: regexes_to_ignore, ignore_case,"),
        ({"metric": "bleu", "tokenize": "13a"}, "metric 'bleu' has no argument 'tokenize'; it takes: none"),
        ({"metric": "exact_match", "ignore_case": "yes"}, "argument 'ignore_case': Input should be a valid boolean"),
        ({"metric": "exact_match", "regexes_to_ignore": ","}, "argument 'regexes_to_ignore': "),
        ({"metric": "exact_match", "regexes_to_ignore": ["("]}, "regexes_to_ignore: missing"),
        ({"metric": "anls", "thresh_hold": "0.5"}, "argument 'thresh_hold': Input should be a valid number"),
        ({"metric": "exact_match", "higher_is_better": "no"}, "higher_is_better must be true or false, not 'no'"),
    ],
)  # fmt: skip
def test_wrong_arguments_of_a_metric(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError) as caught:
        metrics(entry)
    assert str(caught.value).startswith("x.yaml: key 'metric_list': ")
    assert message in str(caught.value)


def test_right_arguments_of_a_metric() -> None:
    entry = {"metric": "exact_match", "ignore_case": True, "regexes_to_ignore": [",", r"\\$"]}
    assert metrics(entry)[0].arguments == {"ignore_case": True, "regexes_to_ignore": [",", r"\\$"]}
    assert metrics({"metric": "anls", "thresh_hold": 1})[0].arguments == {"thresh_hold": 1}


def test_arguments_of_a_likelihood_metric() -> None:
    with pytest.raises(TaskError, match="'acc' has no argument 'ignore_case'; it takes: none"):
        metrics({"metric": "acc", "ignore_case": True}, output_type="multiple_choice", doc_to_choice=["a", "b"])


def test_with_process_results_only_the_own_keys_are_spelt() -> None:
    """Task files of the family leave arguments of metrics that they compute themselves."""
    own = {"process_results": lambda doc, results: {"exact_match": 1.0}}
    assert metrics({"metric": "exact_match", "ignore_case": True, "whatever": 1}, **own)
    with pytest.raises(TaskError, match="no argument 'higher_is_beter'; did you mean 'higher_is_better'"):
        metrics({"metric": "exact_match", "higher_is_beter": True}, **own)


def test_a_registered_metric_is_asked_for_names_only() -> None:
    @register_metric(metric="near", aggregation="mean", higher_is_better=True)
    def near(references: list[str], predictions: list[str], limits: tuple[float, float] = (0, 1)) -> float:
        return float(limits[0] <= len(predictions[0]) - len(references[0]) <= limits[1])

    try:
        assert metrics({"metric": "near", "limits": [0, 2]})[0].arguments == {"limits": [0, 2]}
        with pytest.raises(TaskError, match="'near' has no argument 'limit'; did you mean 'limits'"):
            metrics({"metric": "near", "limit": [0, 2]})
    finally:
        METRICS._values.pop("near")
