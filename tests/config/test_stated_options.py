"""Options that a program reads, changes and runs."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from lmms_eval.config import flags_of, load_configs, parse_flags, parse_options, stated_options
from lmms_eval.errors import ConfigError
from tests.cases import for_each

LINES: list[list[str]] = [
    [],
    ["--model", "openai", "--model_args", 'model=m,extra_body={"a": [1, 2]},base_url=http://h/v1'],
    ["--tasks", "a,b", "--limit", "0.5", "--offset", "3", "--seed", "1,None,2,3", "--batch_size", "auto:4"],
    ["--seed", "0,1234,1234,1234", "--batch_size", "1", "--verbosity", "debug"],
    ["--log_samples", "--output_path", "out", "--no_write_out", "--resume", "--dry_run", "4"],
    ["--reasoning_tags", "none", "--gen_kwargs", "temperature=0.5,until=-x", "--include_path", "-odd"],
    ["--until", "decided:r", "--system_instruction", "a=b, c\nd", "--predict_only"],
]


@for_each("words", LINES, ids=" ".join)
def test_a_line_says_the_same_after_it_was_read_and_written(words: list[str]) -> None:
    words = [word if word != "-odd" else "odd" for word in words]
    stated = stated_options(parse_options(words))
    again = parse_flags(flags_of(stated))
    assert set(parse_flags(words)) <= set(again) and load_configs(stated, {}) == load_configs(again, {})
    assert load_configs(again, {}) == load_configs(parse_flags(words), {})


def test_values_have_their_types_and_every_option_is_there() -> None:
    options = parse_options(["--limit", "5", "--model", "dummy", "--log_samples"])
    assert (options.limit, options.model, options.log_samples, options.num_fewshot) == (5.0, "dummy", True, None)
    assert options.seed == (0, 1234, 1234, 1234) and options.given == {"limit", "model", "log_samples"}
    assert "given" not in vars(options)


@pytest.mark.parametrize("copy", [lambda options: options, lambda options: argparse.Namespace(**vars(options))])
def test_what_a_program_changes_is_given(copy: Any, caplog: pytest.LogCaptureFixture) -> None:
    options = copy(parse_options(["--model", "dummy", "--log_samples"]))
    options.limit, options.model_args, options.log_samples = 2, {"text": "B", "n": [1, 2]}, False
    options.tasks, options.seed, options.of_the_launcher = ["a", "b"], [1, 2, 3, None], 7
    stated = stated_options(options)
    assert "not options of an evaluation: of_the_launcher" in caplog.text
    (config,) = load_configs(stated, {}).configs
    assert (config.limit, config.log_samples, config.tasks, config.seed) == (2.0, False, "a,b", (1, 2, 3, None))
    assert config.arguments("model_args") == {"text": "B", "n": [1, 2]}


def test_the_environment_fills_in_what_is_at_its_default() -> None:
    changed = parse_options(["--model", "dummy"])
    assert load_configs(stated_options(changed), {"VERBOSITY": "ERROR"}).configs[0].verbosity == "ERROR"
    changed = parse_options(["--verbosity", "INFO"])
    assert load_configs(stated_options(changed), {"VERBOSITY": "ERROR"}).configs[0].verbosity == "INFO"


@for_each("words", [["--limt", "3"], ["--limit", "many"], ["word"]])
def test_wrong_lines_are_refused(words: list[str]) -> None:
    with pytest.raises(ConfigError):
        parse_options(words)
