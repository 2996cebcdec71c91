from __future__ import annotations

import json

import pytest

from lmms_eval.config import RunConfig, resolved_cli_args
from lmms_eval.config.options import GROUPS, options
from tests.parity.vectors import GOLDEN_DIR

RECORDED = GOLDEN_DIR / "harness" / "runs" / "vqa_chat" / "results.json"
GIVEN = {"model", "tasks", "model_args", "output_path", "log_samples", "include_path", "hf_hub_log_args"}
OF_THE_TASK = {"repeats", "timezone"}
"""Recorded as null where they are not given: the task's own value, or the machine's zone, holds then."""


@pytest.mark.skipif(not RECORDED.is_file(), reason=f"no recorded run at {RECORDED}")
def test_recorded_options_order_and_defaults() -> None:
    recorded = json.loads(RECORDED.read_text())["config"]["resolved_cli_args"]
    ours = resolved_cli_args(RunConfig())
    assert list(ours)[: len(recorded)] == list(recorded)
    assert ours["fewshot_as_multiturn"] is None  # as the task's family has it: no, unless it is of lm-eval's pack
    ours["fewshot_as_multiturn"] = False
    assert {key: ours[key] for key in recorded if key not in GIVEN | OF_THE_TASK} == {
        key: value for key, value in recorded.items() if key not in GIVEN | OF_THE_TASK
    }


def test_options_have_help_and_a_group() -> None:
    for option in options():
        assert option.text, option.name
        assert option.group in GROUPS, option.name


def test_switches_are_off_by_default() -> None:
    defaults = {option.name: option.default for option in options() if option.is_switch}
    assert defaults.pop("fewshot_as_multiturn") is None, "as the task's family has it"
    assert set(defaults.values()) == {False}


def test_grace_depends_on_the_launcher_unless_given() -> None:
    assert RunConfig().grace_seconds() == 20
    assert RunConfig().grace_seconds(under_launcher=True) == 5
    assert RunConfig(grace=7).grace_seconds(under_launcher=True) == 7


def test_lists_inside_texts() -> None:
    config = RunConfig(tasks=" a, b ,,c*", include_path="folder", plugins="p,q")
    assert config.names("tasks") == ("a", "b", "c*")
    assert config.include_paths == ("folder",)
    assert config.names("plugins") == ("p", "q")
    assert RunConfig().names("tasks") == RunConfig().include_paths == RunConfig().names("plugins") == ()


def test_defaults_as_values() -> None:
    config = RunConfig()
    assert config.tag_pairs("reasoning_tags") == (("<think>", "</think>"), ("<analysis>", "</analysis>"))
    assert config.arguments("model_args") == config.arguments("gen_kwargs") == {}
