from __future__ import annotations

from collections import Counter

import pytest

from lmms_eval.config.options import RunConfig, options
from lmms_eval.config.resolve import flag_names, parse_flags
from lmms_eval.errors import ConfigError
from tests.cases import for_each


def test_only_what_was_given_is_returned() -> None:
    assert parse_flags([]) == {}
    assert parse_flags(["--offset", "0", "--batch_size", "1"]) == {"offset": "0", "batch_size": "1"}


@for_each(
    ("arguments", "expected"),
    [
        (["-b", "4"], {"batch_size": "4"}),
        (["-n", "3"], {"repeats": "3"}),
        (["--num_samples", "3"], {"repeats": "3"}),
        (["-x", "-w"], {"predict_only": True, "write_out": True}),
        (["-c", "dir"], {"use_cache": "dir"}),
        (["--model-args", "a=b,c=d"], {"model_args": "a=b,c=d"}),
        (["--power_analysis"], {"power_analysis": True}),
        (["--std-a", "0.4"], {"std_a": "0.4"}),
        (["--limit", "-1"], {"limit": "-1"}),
        (["--limit=-0.5"], {"limit": "-0.5"}),
        (["--resume"], {"resume": True}),
        (["--resume", "--offset", "1"], {"resume": True, "offset": "1"}),
        (["--resume", "folder"], {"resume": "folder"}),
        (["--no_log_samples"], {"log_samples": False}),
        (["--log_samples", "--no-log-samples"], {"log_samples": False}),
        (["--tasks", "a", "--tasks", "b"], {"tasks": "b"}),
    ],
)
def test_spellings(arguments: list[str], expected: dict[str, object]) -> None:
    assert parse_flags(arguments) == expected


@for_each(
    ("arguments", "message"),
    [
        (["--modle", "x"], "unknown flag --modle; did you mean --model"),
        (["--task", "x"], "did you mean --tasks"),
        (["--zzzzzz"], "see lmms-eval --help"),
        (["--model", "x", "stray"], "unexpected word 'stray'"),
        (["--model"], "--model: expected one argument"),
        (["--log_samples=yes"], "--log_samples: ignored explicit argument"),
    ],
)
def test_mistakes_name_the_flag(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_flags(arguments)


def test_every_spelling_belongs_to_one_option() -> None:
    doubled = [name for name, count in Counter(flag_names()).items() if count > 1]
    assert doubled == []
    assert {option.name for option in options()} == set(RunConfig.__struct_fields__)


@for_each("option", list(options()), ids=lambda option: option.name)
def test_every_option_can_be_given_by_its_flag(option) -> None:
    words = [option.flag] if option.is_switch else [option.flag, "1"]
    assert list(parse_flags(words)) == [option.name]
