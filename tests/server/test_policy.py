from __future__ import annotations

import pytest

from lmms_eval.errors import RefusedRequestError, RequestError
from lmms_eval.server.policy import Policy, without_paths


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
]
REFUSED = [
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
]  # fmt: skip


def _placed(value, root):
    if isinstance(value, dict):
        return {_placed(key, root): _placed(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [_placed(item, root) for item in value]
    return value.replace("ROOT", str(root)) if isinstance(value, str) else value


@pytest.mark.parametrize("request_", ALLOWED, ids=str)
def test_requests_within_the_rules_pass(policy, tmp_path, request_):
    policy.check(_placed(request_, tmp_path))


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
