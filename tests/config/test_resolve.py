from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from lmms_eval.config import (
    RunConfig,
    answer_options,
    argument_text,
    build_config,
    load_configs,
    parse_flags,
    resolved_cli_args,
)
from lmms_eval.config.options import options
from lmms_eval.errors import ConfigError
from tests.cases import for_each


def _load(text: str, *arguments: str) -> RunConfig:
    return _load_all(text, *arguments)[0]


def _load_all(text: str, *arguments: str) -> tuple[RunConfig, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.yaml")
        path.write_text(text)
        return load_configs(parse_flags(["--config", str(path), *arguments]), {}).configs


VALUES: dict[str, list[Any]] = {
    "model": ["hf", "openai", "baseline"],
    "tasks": ["a", "b,c"],
    "model_args": ["", "x=1", "y=2"],
    "batch_size": [1, 4, "auto", "auto:8"],
    "limit": [-1, 0.5, 4, 100],
    "offset": [0, 3],
    "num_fewshot": [0, 2],
    "seed": ["0,1234,1234,1234", "7", "1,2,3,4"],
    "repeats": [1, 4],
    "gen_kwargs": ["", "temperature=0"],
    "verbosity": ["INFO", "DEBUG"],
    "timezone": ["Asia/Singapore", "UTC"],
    "error_budget": [0.0, 0.1],
    "grace": [20, 3],
    "agentic_trace_mode": ["basic", "full"],
    "system_instruction": ["be brief", "be long"],
}
SWITCHES = ["log_samples", "apply_chat_template", "force_simple", "trust_remote_code", "show_config"]
chosen = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in VALUES.items()})
switched = st.fixed_dictionaries({}, optional={name: st.booleans() for name in SWITCHES})


@given(in_file=chosen, on_line=chosen, file_switches=switched, line_switches=switched)
def test_command_line_over_file_over_default(
    in_file: dict[str, Any], on_line: dict[str, Any], file_switches: dict[str, bool], line_switches: dict[str, bool]
) -> None:
    flags = [word for name, value in on_line.items() for word in (f"--{name}", str(value))]
    flags += [f"--{name}" if value else f"--no_{name}" for name, value in line_switches.items()]
    config = _load(yaml.safe_dump({"device": "cpu", **in_file, **file_switches}), *flags)
    expected = build_config({"tasks": "t", **_raw(in_file), **_raw(on_line), "output_path": "o"}, {})
    for name in VALUES:
        if name in in_file or name in on_line:
            assert getattr(config, name) == getattr(expected, name), name
        else:
            assert getattr(config, name) == getattr(RunConfig(), name), name
    for name, value in {**dict.fromkeys(SWITCHES, False), **file_switches, **line_switches}.items():
        assert getattr(config, name) is value, name
    assert config.device == "cpu"


def _raw(values: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) for name, value in values.items()}


def test_a_flag_equal_to_its_default_wins() -> None:
    text = "{limit: 4, offset: 2, batch_size: 8, tasks: t}"
    config = _load(text, "--offset", "0", "--batch_size", "1")
    assert (config.offset, config.batch_size, config.limit) == (0, 1, 4)


@for_each(
    ("text", "name", "value"),
    [
        ('seed: "42,42,42,42"', "seed", (42, 42, 42, 42)),
        ("seed: 42", "seed", (42, 42, 42, 42)),
        ("seed: [1, 2, 3, 4]", "seed", (1, 2, 3, 4)),
        ("seed: [1, null, None, 4]", "seed", (1, None, None, 4)),
        ("tasks: [a, b]", "tasks", "a,b"),
        ("tasks: {a: , b: true, c: false}", "tasks", "a,b"),
        ("model_args: 'a=1,b=x'", "arguments model_args", {"a": 1, "b": "x"}),
        ("model_args: {a: 1, b: [x, y]}", "arguments model_args", {"a": 1, "b": ["x", "y"]}),
        ("model_args: ['a=1', 'b=x']", "arguments model_args", {"a": 1, "b": "x"}),
        ("model_args: ['a=1,c=2', {a: 2}]", "arguments model_args", {"a": 2, "c": 2}),
        ("gen_kwargs: {temperature: 0}", "arguments gen_kwargs", {"temperature": 0}),
        ("batch_size: '4'", "batch_size", 4),
        ("batch_size: auto:2", "batch_size", "auto:2"),
        ("limit: '0.5'", "limit", 0.5),
        ("device: 0", "device", "0"),
        ("include_path: [a, b]", "include_paths", ("a", "b")),
        ("reasoning_tags: none", "tag_pairs reasoning_tags", ()),
        ("reasoning_tags: false", "tag_pairs reasoning_tags", ()),
        ("reasoning_tags: null", "tag_pairs reasoning_tags", ()),
        ("reasoning_tags: [[<r>, </r>]]", "tag_pairs reasoning_tags", (("<r>", "</r>"),)),
        ("resume: true", "resume", True),
        ("resume: folder", "resume", "folder"),
        ("output_path: 2024", "output_path", "2024"),
        ("verbosity: debug", "verbosity", "DEBUG"),
        ("num_fewshot: null", "num_fewshot", None),
        ("plugins: [p, q]", "names plugins", ("p", "q")),
        ("predict_only: true", "log_samples", True),
    ],
)
def test_file_values_pass_the_same_conversions(text: str, name: str, value: object) -> None:
    member, *option = name.split()
    found = getattr(_load(text), member)
    assert (found(*option) if option else found) == value


@for_each(
    ("text", "message"),
    [
        ("{modle: scripted}", r"unknown key 'modle' \(did you mean model\?\)\. Valid keys: config, model, tasks"),
        ("{num_samples: 3}", "did you mean repeats"),
        ("{modle: a, taks: b}", "unknown keys 'modle'.*'taks'"),
        ("{limit: many}", "limit: should be a valid number"),
        ("{limit: true}", "limit: needs a value; got true"),
        ("{num_fewshot: 1.5}", "num_fewshot: should be a valid integer"),
        ("{log_samples: maybe}", "log_samples: should be a valid boolean"),
        ("{verbosity: LOUD}", "verbosity: choose one of TRACE, DEBUG"),
        ("{agentic_trace_mode: some}", "choose one of basic, full"),
        ("{tasks: {a: {limit: 1}}}", "tasks: 'a' has the value"),
        ("{tasks: [1]}", "tasks: give names"),
        ("{model_args: [1]}", "model_args: a list takes"),
        ("{seed: '1,2'}", "seed: "),
        ("{seed: [1, 2, 3, 4, 5]}", "seed: "),
        ("{seed: abc}", "seed: "),
        ("{batch_size: 0}", "batch_size: give a count"),
        ("{batch_size: autos}", "batch_size: give a count"),
        ("{config: other.yaml}", "cannot name another one"),
    ],
)
def test_file_mistakes(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _load(text)


def test_three_seeds_are_filled_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert build_config({"tasks": "t", "seed": "1,2,3"}, {}).seed == (1, 2, 3, 1234)
    assert "the fourth (few-shot sampling) is 1234" in caplog.text


def test_a_mistake_in_a_batch_names_the_run() -> None:
    with pytest.raises(ConfigError, match="run 2: limit"):
        _load_all("- {tasks: a}\n- {tasks: b, limit: x}\n")


def test_flags_apply_to_every_run_of_a_batch() -> None:
    configs = _load_all("- {tasks: a, limit: 1}\n- {tasks: b}\n", "--limit", "9", "--model", "openai")
    assert [(item.tasks, item.limit, item.model) for item in configs] == [("a", 9, "openai"), ("b", 9, "openai")]


def test_the_environment_is_set_before_any_run_is_resolved() -> None:
    environ: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.yaml")
        path.write_text("- {tasks: a}\n- {tasks: b, env: {LMMS_EVAL_MEDIA_ROOT: /late, A_TOKEN: abc}}\n")
        loaded = load_configs({"config": str(path)}, environ)
    assert [item.media_root for item in loaded.configs] == ["/late", "/late"]
    assert loaded.notes == ("Config env: LMMS_EVAL_MEDIA_ROOT=/late", "Config env: A_TOKEN=***")
    assert "A_TOKEN" not in os.environ


def test_recorded_arguments_are_a_configuration_file() -> None:
    first = build_config(
        {"tasks": "a,b", "seed": "1,None,3,4", "limit": "0.5", "model_args": {"x": [1, 2]}, "output_path": "o",
         "predict_only": True, "batch_size": "auto"},
        {},
    )  # fmt: skip
    again = _load(yaml.safe_dump(resolved_cli_args(first)))
    assert structs.replace(again, config="") == first


SECRET = "sk-very-secret-0123456789"


@for_each("model_args", [f"model=m,api_key={SECRET}", {"model": "m", "api_key": SECRET}])
def test_secrets_leave_neither_in_the_record_nor_in_the_run_key(model_args: Any) -> None:
    config = build_config({"tasks": "t", "model_args": model_args}, {})
    assert config.arguments("model_args")["api_key"] == SECRET
    assert SECRET not in str(resolved_cli_args(config))
    assert answer_options(config)["model_args"] == {"model": "m"}


@for_each("text", [f"api_key={SECRET},oops", f"oops api_key={SECRET}"])
def test_secrets_do_not_stand_in_errors(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_config({"tasks": "t", "model_args": "x," + text}, {})
    assert SECRET not in str(caught.value)


def test_wrong_types_of_arguments_do_not_show_secrets() -> None:
    with pytest.raises(ConfigError) as caught:
        _load(f"{{tasks: t, device: {{api_key: {SECRET}}}}}")
    assert "device" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_the_run_key_knows_what_can_change_an_answer() -> None:
    base = answer_options(build_config({"tasks": "t"}, {}))
    same = {
        "output_path": "o", "log_samples": True, "verbosity": "DEBUG", "batch_size": 8, "error_budget": 0.5,
        "reasoning_tags": "none", "model_args": "num_concurrent=4,timeout=3,max_retries=1,batch_size=2,device=cpu",
        "prefetch_mb": 7, "predict_only": True, "tasks": "u", "bootstrap_iters": 5,
    }  # fmt: skip
    assert answer_options(build_config({"tasks": "t", **same}, {})) == base
    for name, value in {
        "model": "openai", "model_args": "temperature=1", "limit": 3, "offset": 1, "repeats": 2, "seed": 5,
        "gen_kwargs": "temperature=1", "system_instruction": "x", "num_fewshot": 2, "force_simple": True,
        "media_root": "/m", "image_encode_format": "JPEG", "apply_chat_template": True,
    }.items():  # fmt: skip
        assert answer_options(build_config({"tasks": "t", name: value}, {})) != base, name


def test_building_from_python_values() -> None:
    assert build_config({"tasks": ["a"], "limit": None, "num_fewshot": 3}, {}).num_fewshot == 3
    with pytest.raises(ConfigError, match="unknown key 'limt'"):
        build_config({"tasks": "a", "limt": 3}, {})


def test_argument_text() -> None:
    assert argument_text("a=1") == "a=1"
    assert argument_text({"a": 1, "b": [1, 2], "c": True}) == "a=1,b=[1, 2],c=True"
    assert argument_text(None) == ""


def test_every_option_is_a_field_with_a_known_type() -> None:
    assert {option.name for option in options()} == set(resolved_cli_args(RunConfig()))


@for_each("name", ["include_path", "plugins", "allow_media"])
def test_lists_may_be_given_flag_by_flag(name: str, tmp_path: Path) -> None:
    words = [word for part in ("a", "b", "c") for word in (f"--{name}", part)]
    for line, found in ((words, ("a", "b", "c")), (words[:2], ("a",))):
        config = load_configs(parse_flags(line), {}).configs[0]
        assert (config.include_paths if name == "include_path" else config.names(name)) == found
    assert getattr(config, name) == "a"
