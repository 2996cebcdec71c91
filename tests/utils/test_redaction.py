from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.utils import redact

SECRET = "s3cr3tvalue0123456789"
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["a", "model=x", "tokens"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["model", "tokenizer", "n"]), inner),
    max_leaves=10,
)


@given(PLAIN)
def test_what_holds_no_secret_stays(value: object) -> None:
    assert redact(value) == value


@pytest.mark.parametrize(
    "key", ["api_key", "API_KEY", "hf_token", "token", "my_api_key", "db-password", "client_secret"]
)
def test_secrets_vanish_wherever_they_stand(key: str) -> None:
    value = {"a": [{key: SECRET}, (f"x=1,{key}={SECRET},y=2",)], "b": f'{key}="{SECRET},{SECRET}" tail'}
    written = json.dumps(redact(value))
    assert SECRET not in written
    assert "y=2" in written and "tail" in written


@pytest.mark.parametrize("text", [f"hf_{SECRET}x", f"Authorization: Bearer {SECRET}", f"key sk-{SECRET}"])
def test_free_standing_keys_vanish(text: str) -> None:
    assert SECRET not in redact(text)


def test_counts_of_tokens_stay() -> None:
    assert redact({"max_tokens": 5, "text": "max_tokens=5"}) == {"max_tokens": 5, "text": "max_tokens=5"}


def test_the_argument_is_not_changed() -> None:
    value = {"token": SECRET}
    redact(value)
    assert value == {"token": SECRET}


def test_user_and_password_of_an_address() -> None:
    shown = redact("base_url=http://me:hunter2@host:80/v1,model=x")
    assert shown == "base_url=http://[REDACTED]@host:80/v1,model=x"
    assert redact("see http://host:80/a@b") == "see http://host:80/a@b"
