from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.utils import redact, redaction
from lmms_eval.utils.redaction import learn_secrets, mask_known, public_query, redact_text
from tests.cases import for_each

SECRET = "s3cr3tvalue0123456789"
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["a", "model=x", "tokens"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["model", "tokenizer", "n"]), inner),
    max_leaves=10,
)


@given(PLAIN)
def test_what_holds_no_secret_stays(value: object) -> None:
    assert redact(value) == value


@for_each("key", ["api_key", "API_KEY", "hf_token", "token", "my_api_key", "db-password", "client_secret"])
def test_secrets_vanish_wherever_they_stand(key: str) -> None:
    value = {"a": [{key: SECRET}, (f"x=1,{key}={SECRET},y=2",)], "b": f'{key}="{SECRET},{SECRET}" tail'}
    written = json.dumps(redact(value))
    assert SECRET not in written
    assert "y=2" in written and "tail" in written


@for_each("text", [f"hf_{SECRET}x", f"Authorization: Bearer {SECRET}", f"key sk-{SECRET}"])
def test_free_standing_keys_vanish(text: str) -> None:
    assert SECRET not in redact(text)


def test_counts_of_tokens_stay() -> None:
    assert redact({"max_tokens": 5, "text": "max_tokens=5"}) == {"max_tokens": 5, "text": "max_tokens=5"}


def test_the_argument_is_not_changed() -> None:
    value = {"token": SECRET}
    redact(value)
    assert value == {"token": SECRET}


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets that a test has made known are forgotten after it."""
    monkeypatch.setattr(redaction, "_known", redaction._Known())


@for_each(
    ("given", "shown"),
    [
        ("http://KEYKEY@host/v1", "http://[REDACTED]@host/v1"),
        ("http://me:hunter2@host:80/v1,model=x", "http://[REDACTED]@host:80/v1,model=x"),
        ("https://h/v1?key=a&sig=b#c=d", "https://h/v1?key=[REDACTED]&sig=[REDACTED]#c=[REDACTED]"),
        ("https://h/v1#plain", "https://h/v1#[REDACTED]"),
        ("base_url=https://h/v1#plain,model=x", "base_url=https://h/v1#[REDACTED],model=x"),
        ("https://h/v1?plain", "https://h/v1?[REDACTED]"),
        ("https://h/v1?plain&a=b#more", "https://h/v1?[REDACTED]&a=[REDACTED]#[REDACTED]"),
        ("base_url=https://h/v1?code=a,model=x", "base_url=https://h/v1?code=[REDACTED],model=x"),
        ("see http://host:80/a@b and a?b=c", "see http://host:80/a@b and a?b=c"),
        ('{"url":"http://h/?k=v"}', '{"url":"http://h/?k=[REDACTED]"}'),
    ],
)
def test_addresses_lose_users_and_query_values(given: str, shown: str) -> None:
    assert redact(given) == shown
    assert redact(redact(given)) == shown


SECRETS = {
    "a named argument": ({"model_args": f"model=m,api_key={SECRET}"}, {}),
    "a mapping": ({"model_args": {"extra_body": {"auth": {"code": SECRET}}}}, {}),
    "JSON in a text": ({"gen_kwargs": f'extra_body={{"authorization": "Bearer {SECRET}"}}'}, {}),
    "a query": ({"base_url": f"https://host/v1?sv=1&sig={SECRET}"}, {}),
    "a user": ({"base_url": f"https://{SECRET}@host/v1"}, {}),
    "a password": ({"arguments": ["--model_args", f"base_url=https://me:{SECRET}@host/v1,model=m"]}, {}),
    "a path": ({"base_url": f"https://host/{SECRET}/v1"}, {}),
    "a path behind the version": ({"base_url": f"https://host/v1/{SECRET}"}, {}),
    "a fragment": ({"base_url": f"https://host/v1#{SECRET}"}, {}),
    "a query without a name": ({"base_url": f"https://host/v1?{SECRET}"}, {}),
    "a credential": ({"model_args": {"aws_credential": SECRET}}, {}),
    "a name of several words": ({"model_args": {"serviceAccountCredential": SECRET, "n": 1}}, {}),
    "a header": ({"model_args": {"headers": {"X-Service-Credential": SECRET}}}, {}),
    "a credential of the environment": ({}, {"SOME_CREDENTIAL": SECRET}),
    "the environment": ({}, {"SOME_API_KEY": SECRET}),
}


@pytest.mark.parametrize(("values", "environment"), SECRETS.values(), ids=SECRETS)
@pytest.mark.usefixtures("forgetful")
def test_what_was_a_secret_once_is_masked_everywhere(values: dict[str, object], environment: dict[str, str]) -> None:
    learn_secrets(values, environment)
    said = f"the server said: no such key {SECRET}!"
    assert mask_known(said) == redact(said) == "the server said: no such key [REDACTED]!"
    assert redact({"metrics": {"first_token": 0.5}}, by_name=False) == {"metrics": {"first_token": 0.5}}


@pytest.mark.parametrize(
    "address", ["https://host/v1/{}", "https://host/v1beta/{}/chat", "https://host/v1#{}", "https://host/x?{}"]
)
@pytest.mark.usefixtures("forgetful")
def test_short_keys_of_addresses_are_masked_everywhere(address: str) -> None:
    key = "q7Rt2mZ9x"
    learn_secrets({"base_url": address.format(key)})
    assert key not in mask_known(address.format(key))
    assert mask_known(f"no such key {key}") == "no such key [REDACTED]"


@pytest.mark.parametrize("path", ["v1/chat", "v1/openai", "v1/anthropic", "v1/models/gpt4turbo", "team42abc/v1"])
@pytest.mark.usefixtures("forgetful")
def test_words_of_addresses_are_no_keys(path: str) -> None:
    learn_secrets({"base_url": f"https://host/{path}"})
    assert mask_known(f"{path} of https://host/{path}") == f"{path} of https://host/{path}"


@pytest.mark.usefixtures("forgetful")
def test_what_is_no_secret_is_not_learnt() -> None:
    url = "https://host:8000/openai/deployments/gpt-4o-mini-2024-07-18/v1"
    learn_secrets(
        {"model_args": f"model=Qwen/Qwen2.5-VL-7B-Instruct,base_url={url},api_key=EMPTY,token=abc,n=5"},
        {"PATH": "/usr/local/bin"},
    )
    text = f"model Qwen/Qwen2.5-VL-7B-Instruct at {url}: EMPTY abc /usr/local/bin"
    assert redact(text) == text


@pytest.mark.usefixtures("forgetful")
def test_words_of_several_meanings_are_no_secrets() -> None:
    given = "base_url=https://user@host/v1?version=latest&api-version=2024-10-21,key=name,code=python"
    places = {
        "PWD": "/home/me/work",
        "OLDPWD": "/home/me",
        "GOOGLE_CREDENTIALS": "/home/me/key.json",
        "CODE": "python-3",
    }
    learn_secrets({"model_args": given}, places)
    text = "/home/me/work: latest python, 2024-10-21 name of python-3 in /home/me/key.json"
    assert mask_known(text) == text


@pytest.mark.usefixtures("forgetful")
def test_a_secret_as_an_address_spells_it() -> None:
    learn_secrets({}, {"AWS_SECRET_ACCESS_KEY": "with/slash+plus=0"})
    assert mask_known("key with%2Fslash%2Bplus%3D0, with/slash+plus=0") == "key [REDACTED], [REDACTED]"


@for_each("piece", ["a", "http://", "token=", "?a=b&", "://@", "bearer ", "sk-", "a.b-", '"', "a:"])
def test_long_texts_take_time_by_their_length_alone(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    began = time.process_time()
    redact(text)
    learn_secrets({"text": text})
    assert time.process_time() - began < 2


def test_the_public_part_of_a_query() -> None:
    assert public_query("https://h/v1?api-version=1&sig=x&deployment=a") == "api-version=1&deployment=a"


def test_a_secret_within_a_longer_key_does_not_spare_the_rest() -> None:
    learn_secrets({"api_key": "abcdefghijkl"})
    assert redact_text("sk-abcdefghijklmnopqrstuvwxyz") == "[REDACTED]"
    assert redact_text("Bearer abcdefghijklmnopqrstuvwxyz.") == "Bearer [REDACTED]"


def test_a_secret_of_several_words_vanishes_behind_its_name() -> None:
    learn_secrets({"password": "correct horse battery"})
    assert "battery" not in redact_text("password=correct horse battery")


def test_the_key_of_bedrock_is_a_secret_whatever_it_is_called() -> None:
    learn_secrets({}, {"AWS_BEARER_TOKEN_BEDROCK": "bedrock-key-1234", "AWS_REGION": "eu-central-1"})
    assert mask_known("bedrock-key-1234 in eu-central-1") == "[REDACTED] in eu-central-1"
