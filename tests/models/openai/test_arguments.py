"""Names, defaults and checks of model arguments; server and key."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.openai.arguments import REASONING_MODEL, find_endpoint, parse_arguments
from tests.cases import for_each


def parse(**given: Any) -> Any:
    return parse_arguments({"model": "m", **given}, {})


@for_each("name", ["model", "model_version", "pretrained"])
def test_three_names_of_the_model(name: str) -> None:
    assert parse_arguments({name: "gpt-x"}, {}).model == "gpt-x"


def test_names_of_both_interfaces() -> None:
    parsed = parse(num_cpus=4, nframes=64, fps=2, is_qwen3_vl=True, prefix_hash_chars=64, batch_size=1, device="cuda")
    assert (parsed.num_concurrent, parsed.max_frames_num, parsed.video_fps, parsed.timestamps) == (4, 64, 2.0, True)


def test_defaults() -> None:
    parsed = parse()
    assert (parsed.num_concurrent, parsed.max_retries, parsed.timeout, parsed.max_frames_num) == (32, 5, 600.0, 10)
    assert (parsed.max_new_tokens, parsed.ceiling, parsed.adaptive_concurrency) == (1024, 32, False)
    assert parse(adaptive_concurrency=True).ceiling == 128


def test_texts_are_read() -> None:
    parsed = parse(pass_video_url="true", timeout="30", extra_body='{"top_k": 1}', enable_thinking_kwarg=False)
    assert parsed.pass_video_url is True and parsed.timeout == 30.0 and parsed.extra_body == {"top_k": 1}
    assert parsed.enable_thinking_kwarg is False


def test_a_key_of_digits_stays_a_text() -> None:
    assert parse(api_key=12345678).api_key == "12345678"


@for_each(
    ("given", "words"),
    [
        ({"num_concurent": 3}, "did you mean num_concurrent"),
        ({"zzz": 3}, "it takes: .*timeout"),
        ({"timeout": 0}, "timeout: .*greater than 0"),
        ({"num_concurrent": "many"}, "num_concurrent: .*integer"),
        ({"extra_body": "{"}, "extra_body"),
        ({"model_version": "other"}, "given twice"),
        ({"api_version": "v"}, "azure_openai=true"),
        ({"api": "responses", "pass_video_url": True}, "Responses API"),
        ({"mcp_server_path": "x.py", "api": "responses"}, "needs a conversation"),
        ({"model": ""}, "model=NAME"),
    ],
)
def test_wrong_arguments(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        parse(**given)


def test_values_are_not_shown() -> None:
    with pytest.raises(ModelError) as caught:
        parse(api_key=["sk-secret"], timeout="sk-secret")
    assert "secret" not in str(caught.value)


def test_environment_gives_defaults_only() -> None:
    environment = {"LMMS_IMAGE_ENCODE_FORMAT": "jpg", "LMMS_IMAGE_JPEG_QUALITY": "70"}
    parsed = parse_arguments({"model": "m"}, environment)
    assert (parsed.image_format, parsed.image_quality) == ("JPEG", 70)
    assert parse_arguments({"model": "m", "image_format": "webp"}, environment).image_format == "WEBP"


@for_each(
    ("given", "environment", "url"),
    [
        ({"base_url": "http://h:1/v1/"}, {"OPENAI_API_BASE": "http://e/v1"}, "http://h:1/v1/chat/completions"),
        ({"base_url": "http://h:1/v1/chat/completions"}, {}, "http://h:1/v1/chat/completions"),
        ({}, {"OPENAI_API_BASE": "http://a/v1", "OPENAI_BASE_URL": "http://b/v1"}, "http://a/v1/chat/completions"),
        ({}, {"OPENAI_BASE_URL": "http://b/v1"}, "http://b/v1/chat/completions"),
        ({}, {"OPENAI_API_KEY": "k"}, "https://api.openai.com/v1/chat/completions"),
        ({"base_url": "http://[::1]:8/v1"}, {}, "http://[::1]:8/v1/chat/completions"),
    ],
)
def test_the_server(given: dict[str, Any], environment: dict[str, str], url: str) -> None:
    endpoint = find_endpoint(parse(**given), environment)
    assert endpoint.url == endpoint.shown == url
    assert endpoint.is_public == ("api.openai.com" in url)


def test_the_key() -> None:
    parsed = parse(base_url="http://127.0.0.1:1/v1")
    assert find_endpoint(parsed, {}).authorization == "Bearer EMPTY"
    assert find_endpoint(parsed, {"OPENAI_API_KEY": "k1"}).authorization == "Bearer k1"
    given = parse(base_url="http://127.0.0.1:1/v1", api_key="k2")
    assert find_endpoint(given, {"OPENAI_API_KEY": "k1"}).authorization == "Bearer k2"
    assert "k2" not in repr(given) + repr(find_endpoint(given, {}))


@for_each("base", ["localhost:8000/v1", "ftp://h/v1", "http:///v1", "http://h:port/v1"])
def test_no_address(base: str) -> None:
    with pytest.raises(ModelError, match="base_url"):
        find_endpoint(parse(base_url=base), {})


def test_the_public_server_needs_a_key() -> None:
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        find_endpoint(parse(), {})


@for_each("name", ["gpt-5", "gpt-5-mini", "gpt-5.1", "o1", "o3-pro", "openai/o4-mini", "O3"])
def test_reasoning_models(name: str) -> None:
    assert REASONING_MODEL.match(name)


@for_each("name", ["gpt-4o", "o10", "llama-o1", "qwen3", "gpt-50", "my/model"])
def test_other_models(name: str) -> None:
    assert not REASONING_MODEL.match(name)
