"""Who may read a view."""

from __future__ import annotations

import pytest

from lmms_eval.http.guard import Guard

GUARD = Guard("8000", "secret-token")
HOST = {"host": "127.0.0.1:8000"}
KNOWN = {**HOST, "cookie": "other=1; lmms_view_8000=secret-token"}


@pytest.mark.parametrize(
    ("method", "headers", "query", "status"),
    [
        ("GET", HOST, "secret-token", None),
        ("HEAD", HOST, "secret-token", None),
        ("GET", KNOWN, "", None),
        ("GET", {**KNOWN, "host": "localhost:9999"}, "", None),  # a port that ssh forwards
        ("GET", {**KNOWN, "host": "[::1]:8000"}, "", None),
        ("GET", {**KNOWN, "origin": "http://127.0.0.1:8000"}, "", None),
        ("GET", {**KNOWN, "sec-fetch-site": "same-origin"}, "", None),
        # A link in a mail or a chat is a navigation from another site.
        ("GET", {**HOST, "sec-fetch-site": "cross-site"}, "secret-token", None),
        ("GET", HOST, "", 403),
        ("GET", HOST, "secret-toke", 403),
        ("GET", HOST, "secret-token&more", 403),
        ("GET", {**HOST, "cookie": "lmms_view_8001=secret-token"}, "", 403),
        ("GET", {**HOST, "cookie": "lmms_view_8000=guess"}, "", 403),
        ("GET", {**HOST, "cookie": "lmms_view_8000=\u00e9; \x01=;;"}, "", 403),
        ("GET", {**KNOWN, "host": "evil.example:8000"}, "secret-token", 403),
        ("GET", {**KNOWN, "host": "127.0.0.1.evil.example"}, "", 403),
        ("GET", {**KNOWN, "host": "user@127.0.0.1:8000"}, "", 403),
        ("GET", {**KNOWN, "host": "127.0.0.1:x"}, "", 403),
        ("GET", {**KNOWN, "host": "[::1"}, "", 403),
        ("GET", {**KNOWN, "host": "localhost/"}, "", 403),
        ("GET", {"cookie": KNOWN["cookie"]}, "secret-token", 403),
        ("GET", {**KNOWN, "origin": "http://evil.example"}, "secret-token", 403),
        ("GET", {**KNOWN, "origin": "http://127.0.0.1:9999"}, "", 403),
        ("GET", {**KNOWN, "origin": "null"}, "", 403),
        ("GET", {**KNOWN, "sec-fetch-site": "same-site"}, "", 403),
        ("GET", {**KNOWN, "sec-fetch-site": "cross-site"}, "", 403),
        *((method, KNOWN, "secret-token", 405) for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")),
    ],
)
def test_the_rules(method: str, headers: dict[str, str], query: str, status: int | None) -> None:
    refusal = GUARD.refuses(method, headers, query)
    assert (None if refusal is None else refusal.status) == status


def test_the_token_is_new_each_time_and_never_shown() -> None:
    one, other = Guard("1"), Guard("1")
    assert one.token != other.token
    assert len(one.token) >= 43  # 32 bytes
    assert one.token not in repr(one)
    assert "HttpOnly" in one.set_cookie
    assert "SameSite=Strict" in one.set_cookie
