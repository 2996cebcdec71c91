"""Requests as commands and files, and files as requests."""

from __future__ import annotations

import shlex
import subprocess
import sys

import yaml

from lmms_eval.config.resolve import load_configs, parse_flags
from lmms_eval.server.page.preview import preview, problems_of, read_request
from tests.cases import for_each

REQUEST = {"model": "hf", "model_args": {"pretrained": "embedded"}, "tasks": ["a", "b"], "limit": 8}


def given(command: str) -> dict[str, object]:
    return parse_flags(shlex.split(command.replace(" \\\n ", " "))[1:])


def test_the_command_says_what_the_request_says() -> None:
    shown = preview({**REQUEST, "log_samples": True, "process_with_media": False, "batch_size": ""})
    assert shown.problems == ()
    assert given(shown.command) == {
        "model": "hf", "model_args": "pretrained=embedded", "tasks": "a,b", "limit": "8", "log_samples": True,
        "output_path": "results",
    }  # fmt: skip
    filled = {"log_samples": True, "output_path": "results"}
    assert yaml.safe_load(shown.yaml) == {**REQUEST, **filled, "process_with_media": False}
    assert "log_samples" not in given(preview({**REQUEST, "log_samples": False}).command)


def test_gpus_of_the_server_are_processes_of_the_command() -> None:
    shown = preview({**REQUEST, "num_gpus": 2})
    assert shown.problems == ()
    assert given(shown.command)["processes"] == "2"
    assert read_request(shown.yaml).request == {**REQUEST, "num_gpus": 2}


@for_each(
    "text", ["$(touch x) `y`; rm -rf /", 'it\'s "quoted"', "--flag", "a\nb", "*", "-x"], ids=lambda text: text[:8]
)
def test_what_is_copied_is_one_word_of_the_shell(text: str) -> None:
    command = preview({**REQUEST, "system_instruction": text}).command
    script = command.replace("lmms-eval", shlex.join([sys.executable, "-c", "import json, sys; print(sys.argv[1:])"]))
    said = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert repr(text) in said or repr(f"--system_instruction={text}") in said
    assert load_configs(given(command), {}).configs[0].system_instruction == text


@for_each("value", ["a,b", "1e3", "true", " x "])
def test_values_that_no_flag_can_say_go_by_a_file(value: str) -> None:
    shown = preview({**REQUEST, "model_args": {"pretrained": value}})
    assert yaml.safe_load(shown.yaml)["model_args"]["pretrained"] == value
    assert shown.command == "lmms-eval --config run.yaml"


def test_a_recipe_is_an_option_like_others() -> None:
    recipe = "qwen3-vl-instruct@qwen-evaluation:cot"
    shown = preview({**REQUEST, "recipe": recipe, "recipe_partial": True})
    assert shown.problems == ()
    assert (given(shown.command)["recipe"], given(shown.command)["recipe_partial"]) == (recipe, True)
    assert read_request(shown.yaml).request["recipe"] == recipe


def test_lists_and_braces_stay_on_the_command_line() -> None:
    shown = preview({**REQUEST, "model_args": {"model": "x=y", "mm_processor_kwargs": '{"a": [1, 2]}'}})
    told = load_configs(given(shown.command), {}).configs[0].arguments("model_args")
    assert told == {"model": "x=y", "mm_processor_kwargs": '{"a": [1, 2]}'}


def test_secrets_are_refused_and_never_shown() -> None:
    shown = preview({**REQUEST, "model_args": {"model": "m", "api_key": "sk-abcdefghijklmnopqrstuvwxyz"}})
    assert [(one.name, "api_key" in one.text) for one in shown.problems] == [("model_args", True)]
    assert "abcdefghij" not in repr(shown)


@for_each(
    ("more", "name", "text"),
    [
        ({"limt": 3}, "limt", "did you mean limit?"),
        ({"limit": "many"}, "limit", "limit"),
        ({"order": "sideways"}, "order", "choose one of"),
        ({"env_setup": "rm -rf /"}, "env_setup", "no commands"),
        ({"env_vars": "A=1"}, "env_vars", "environment of the server"),
        ({"config": "/etc/passwd"}, "config", "no file of the server"),
        ({"resume": True}, "resume", "the server resumes"),
        ({"fewshot_as_multiturn": True}, "fewshot_as_multiturn", "needs --apply_chat_template"),
        ({"tasks": []}, "tasks", "missing"),
    ],
)
def test_problems_have_names(more: dict[str, object], name: str, text: str) -> None:
    found = list(problems_of({**REQUEST, **more}))
    assert [one.name for one in found] == [name]
    assert text in found[0].text


def test_files_become_requests() -> None:
    found = read_request("model: hf\nmodel_args: pretrained=embedded,dtype=float32\ntasks: a, b\nlimit: 8\n")
    assert found.problems == ()
    expected = {"model": "hf", "model_args": {"pretrained": "embedded", "dtype": "float32"}, "tasks": ["a", "b"]}
    assert found.request == {**expected, "limit": 8}
    assert read_request(preview(REQUEST).yaml).request == REQUEST


def test_mistakes_in_files_are_told_by_name_and_line() -> None:
    text = (
        "model: hf\ntasks: [a]\nlimt: 3\nenv:\n  HF_TOKEN: hf_abc\nlimit: x\nmodel_args: {api_key: sk-aaaabbbbcccc}\n"
    )
    found = read_request(text)
    assert {(one.name, one.line) for one in found.problems} == {
        ("limt", 3),
        ("env", 4),
        ("limit", 6),
        ("model_args", 7),
    }
    assert found.request == {"model": "hf", "tasks": ["a"]}
    assert "aaaabbbb" not in repr(found) and "hf_abc" not in repr(found)


@for_each(
    ("text", "line"),
    [("a: [", 1), ("model: hf\nmodel: hf2\n", 2), ("- {model: a}\n- {model: b}\n", 0), ("just text", 0), ("", 0)],
)
def test_texts_that_are_no_request(text: str, line: int) -> None:
    found = read_request(text)
    assert found.request == {}
    (problem,) = found.problems
    assert problem.text
    assert (problem.line or 0) == line


def test_bombs_are_refused() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert read_request(bomb).request == {}
    assert read_request("a" * 300_000).problems[0].text.startswith("the file has more than")
