from __future__ import annotations

import os
import time

import pytest

from lmms_eval.config.options import options
from lmms_eval.errors import RefusedRequestError, RequestError
from lmms_eval.server.policy import Policy, without_paths
from tests.cases import for_each

FREE = {"system_instruction", "where", "reasoning_tags", "thinking_tags"}
"""Texts for a model, or of a grammar that names no file."""


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "allowed").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "allowed" / "link").symlink_to(tmp_path / "other")
    return Policy.of_places((str(tmp_path / "allowed"), "http://127.0.0.1:9000/v1"))


ALLOWED = [
    {"model_args": {"pretrained": "org/m", "n": 3}},
    {"model_args": "pretrained=ROOT/allowed/step-1"},
    {"model_args": {"base_url": "http://127.0.0.1:9000/v1/chat"}},
    {"output_dir": "ROOT/allowed/new/deeper"},
    {"output_dir": "relative"},
    {"ids": "1-3,7"},
    {"prices": "litellm"},
    {"trust_remote_code": False, "model_args": {"trust_remote_code": "False"}},
    {"baseline": "hf://user/repo"},
    {"allow_media": "ROOT/allowed/a,ROOT/allowed/b"},
    {"tasks": ["mme", "mmmu*"]},
    {"tasks": ["lm-eval:gsm8k", "lm-eval:mmlu_*"], "pack_first": True},
    {"judge_model": "openai:gpt-4o", "judge_args": "model=org/m"},
    {"judge_model": "hf:ROOT/allowed/judge"},
    {"judge_model": "azure:gpt-4o/eu"},
    {"t2i": "diffusers:org/pipeline"},
    {"until": "decided:hf://user/repo/file.jsonl"},
    {"until": ["mme: decided:ROOT/allowed/a.jsonl", "halfwidth<=1%"]},
    {"until": "decided:0.5; mme: decided:baseline-name"},
    {"gen_kwargs": {"until": ["/end", "</s>", "a: /b"]}},
    {"gen_kwargs": "stop=/end"},
    {"system_instruction": "Answer yes/no; see: /usr is a folder, ~ is home, .. is above"},
    {"where": "kind == '/a' or size: 3"},
    {"model_args": {"system_prompt": "Answer with yes / no. Then </think>."}},
    {"timezone": "Etc/GMT+1"},
    {"recipe": "qwen3-vl-instruct@qwen-evaluation:cot+report", "recipe_partial": True},
    {"recipe": "ROOT/allowed/mine.yaml"},
    {"recipe": "ROOT/allowed/mine.yaml:cot"},
    {"nltk_data": "ROOT/allowed/a:ROOT/allowed/b"},
]
REFUSED = [
    {"recipe": "mine.yaml"},
    {"recipe": "/etc/mine.yaml:cot"},
    {"recipe": "ROOT/allowed/../other/mine.yaml"},
    {"recipe": "a/../../mine.yaml:cot"},
    {"model_args": {"pretrained": "/etc"}},
    {"model_args": "pretrained=ROOT/allowed/../other"},
    {"model_args": "pretrained=ROOT/allowed/link/x"},
    {"model_args": {"deep": [{"er": "~root/x"}]}},
    {"model_args": {"pretrained": "a/../../b"}},
    {"model_args": {"/etc/passwd": 1}},
    {"output_dir": "ROOT/other"},
    {"output_dir": "../x"},
    {"judge_prompts": "relative.yaml"},
    {"ids": "numbers.txt"},
    {"use_cache": "/var/cache"},
    {"allow_media": "ROOT/allowed/a,/etc"},
    {"allow_media": "https://example.org"},
    {"judge_base_url": "http://127.0.0.1:9001/v1"},
    {"model_args": {"base_url": "http://127.0.0.1:9000@example.org/v1"}},
    {"model_args": {"base_url": "http://127.0.0.1:9000/v10"}},
    {"model_args": {"base_url": "file:///etc/passwd"}},
    {"model_args": {"api_key": "k"}},
    {"judge_args": "hf_token=k"},
    {"trust_remote_code": True},
    {"model_args": "trust_remote_code=True"},
    {"model_args": {"inner": {"Trust-Remote-Code": 1}}},
    {"model_args": {"mcp_server_path": "x.py"}},
    {"model_args": {"worker_cls": "a.B"}},
    {"include_path": "ROOT/allowed"},
    {"plugins": "mine"},
    {"allow_unsafe_code": True},
    {"tasks": ["ROOT/allowed/t.yaml"]},
    {"tasks": ["t.yaml"]},
    {"device": "a\0b"},
    {"until": "decided:hf://user/repo/../../x"},
    {"until": "decided:hf://user/repo; mme: decided:/etc/passwd"},
    {"nltk_data": "ROOT/allowed/a:/etc"},
    {"baseline": "samples.jsonl"},
    {"allow_media": "http://127.0.0.1:9000/v1,/etc"},
]
NAMED = ["hf", "internvl", "replay", "diffusers", "decided", "mme: decided", "file", "name", "a.b", "x=y"]
"""What may stand before a path."""  # fmt: skip


def _placed(value, root):
    if isinstance(value, dict):
        return {_placed(key, root): _placed(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [_placed(item, root) for item in value]
    return value.replace("ROOT", str(root)) if isinstance(value, str) else value


@pytest.mark.parametrize("request_", ALLOWED, ids=str)
def test_requests_within_the_rules_pass(policy, tmp_path, request_):
    request = _placed(request_, tmp_path)
    policy.check(request)
    assert request == _placed(request_, tmp_path)
    with pytest.raises(RefusedRequestError, match="api_key"):  # the last one, behind all that passed
        policy.check({**request, "api_key": "x"})


@pytest.mark.parametrize("request_", REFUSED, ids=str)
def test_requests_beyond_the_rules_are_refused(policy, tmp_path, request_):
    with pytest.raises(RefusedRequestError):
        policy.check(_placed(request_, tmp_path))


def test_code_passes_where_the_server_allows_it(tmp_path):
    policy = Policy.of_places((str(tmp_path),), allows_code=True)
    policy.check({"trust_remote_code": True, "plugins": "mine", "tasks": [f"{tmp_path}/t.yaml"]})
    with pytest.raises(RefusedRequestError, match="allow_path"):
        policy.check({"include_path": "/etc"})


def test_arguments_that_cannot_be_read_are_an_error(policy):
    with pytest.raises(RequestError, match="key=value"):
        policy.check({"model_args": "no equals sign"})


def test_paths_are_left_out_of_texts_for_other_machines():
    told = without_paths("cannot read /home/me/a b.json: see 'https://x.org/a/b' and /tmp (1/2)")
    assert told == "cannot read …/a b.json: see 'https://x.org/a/b' and …/tmp (1/2)"


@pytest.mark.parametrize(
    "place", ["/etc/passwd", "~/.ssh/id", "~root/x", "~", "/", "../x", "a/../../x", " /etc/passwd"]
)
@pytest.mark.parametrize("name", NAMED)
def test_no_option_takes_a_path_behind_a_name(policy, tmp_path, name, place):
    text = f"{name}:{place}"
    for option in options():
        if option.name in FREE:
            continue
        forms = [text, [text], f"{name};{name}:{place}", f"{name}={place}", f"{name}:{tmp_path}/allowed/x;{place}"]
        if option.name.endswith(("_args", "_kwargs")):
            forms = [{"a": text}, {"a": [{"b": text}]}, f"a={text}", {text: 1}, {"a": f'{{"b": "{text}"}}'}]
        for form in forms:
            if place == "/" and option.name.endswith("_args"):
                continue  # a sign between words
            with pytest.raises(RefusedRequestError):
                policy.check({option.name: form})


def policy_passes(policy, request):
    try:
        policy.check(request)
    except RequestError:
        return False
    return True


def _refusal(policy, request):
    with pytest.raises(RefusedRequestError) as caught:
        policy.check(request)
    return str(caught.value)


@pytest.mark.parametrize("form", ["{}", "hf:{}", "mme: decided:{}"])
def test_a_refusal_does_not_tell_what_is_there(policy, tmp_path, form):
    other = tmp_path / "other"
    (other / "file").write_text("x")
    (other / "folder").mkdir()
    (other / "closed").mkdir(mode=0)
    (other / "loop").symlink_to(other / "loop")
    os.mkfifo(other / "pipe")
    names = ("file", "folder", "closed/x", "loop", "loop/x", "pipe", "absent", "absent/x", "file/x")
    for option in ("judge_model", "until", "data_root", "baseline", "model_args", "ids", "output_dir", "judge_prompts"):
        told = {
            _refusal(policy, {option: {"a": text} if option == "model_args" else text})
            for text in (form.format(other / name) for name in names)
        }
        assert len(told) == 1, told
        assert str(tmp_path) not in told.pop()


@for_each("name", ["judge_model", "until", "t2i", "data_root", "judge_prompts", "prices", "ids"])
def test_pipes_and_devices_are_no_files(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    policy = Policy.of_places((str(tmp_path), "/dev"))
    for place in (tmp_path / "pipe", "/dev/zero", "/dev/tty"):
        with pytest.raises(RefusedRequestError, match="neither a file nor a folder"):
            policy.check({name: str(place)})
        with pytest.raises(RefusedRequestError):
            policy.check({name: f"replay:{place}"})


def test_a_long_text_is_read_in_time_that_grows_with_it(policy):
    for sign in (":", ",", "=", "/", "..", "://", "hf:", " "):
        began = time.monotonic()
        policy_passes(policy, {"judge_model": sign * 200_000, "model_args": {"a": sign * 200_000}})
        assert time.monotonic() - began < 5, sign
