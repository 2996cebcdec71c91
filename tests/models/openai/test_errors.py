"""What a failed attempt is taken for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from lmms_eval.models.remote.errors import MAX_SHOWN, error_in_body, redact, retry_after, shorten, status_error
from tests.cases import for_each

URL = "http://h/v1/chat/completions"


@for_each(
    ("status", "body", "kind", "retry"),
    [
        (302, b"", "bad_request", False),
        (400, b"{}", "bad_request", False),
        (400, b'{"error": {"code": "content_filter", "message": "no"}}', "refused", False),
        (401, b"nope", "auth", False),
        (402, b"", "auth", False),
        (403, b"", "auth", False),
        (404, b'{"detail": "Not Found"}', "bad_request", False),
        (405, b"", "bad_request", False),
        (408, b"", "timeout", True),
        (409, b"", "server_error", True),
        (413, b"", "bad_request", False),
        (422, b"", "bad_request", False),
        (425, b"", "server_error", True),
        (429, b"", "rate_limit", True),
        (429, b'{"error": {"code": "insufficient_quota"}}', "rate_limit", False),
        (500, b'["x"]', "server_error", True),
        (503, b'{"error": "overloaded"}', "server_error", True),
        (503, b'{"error": "Rate limit reached"}', "rate_limit", True),
        (599, b"", "server_error", True),
    ],
)
def test_status(status: int, body: bytes, kind: str, retry: bool) -> None:
    error = status_error(status, body, {}, URL)
    assert (error.kind, error.retry) == (kind, retry)
    assert f"HTTP {status}" in str(error) and URL in str(error)


@for_each(
    "body",
    [
        b'{"error": {"message": "maximum context length is 4096 tokens"}}',
        b'{"message": "Prompt is too long: 9000 tokens", "object": "error"}',
        b'{"error": {"message": "x", "code": "context_length_exceeded"}}',
    ],
)
def test_context_length_is_named(body: bytes) -> None:
    assert "longer than the model's context length" in str(status_error(400, body, {}, URL))


def test_errors_with_status_200() -> None:
    raw = b'{"error": {"message": "slow down", "code": "429"}}'
    assert error_in_body({"error": {"message": "slow down", "code": "429"}}, raw, URL).kind == "rate_limit"
    assert error_in_body({"error": "broken"}, b'{"error": "broken"}', URL).kind == "malformed"


@for_each(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    found = retry_after({"retry-after": date})
    assert found is not None and 28 <= found <= 30


def test_messages_are_short_and_without_keys() -> None:
    assert len(shorten("word " * 500)) == MAX_SHOWN
    assert redact("my key mykey123 and Bearer abcdefghij and sk-abcdefghijklmnopqrstuvwxyz", ("mykey123",)) == (
        "my key [REDACTED] and Bearer [REDACTED] and [REDACTED]"
    )
