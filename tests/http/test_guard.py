"""Who may read a view."""

from __future__ import annotations

from lmms_eval.http.guard import Guard
from tests.cases import for_each

GUARD = Guard("8000", "secret-token")
HOST = {"host": "127.0.0.1:8000"}
KNOWN = {**HOST, "cookie": "other=1; lmms_view_8000=secret-token"}


@for_each(
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


METHODS = ("GET", "HEAD", "POST", "DELETE")
SERVER = Guard("1", "a-secret-token", methods=METHODS, is_page=False, names=frozenset({"eval.lab"}), any_address=True)
OPEN = Guard("1", "", methods=METHODS, is_page=False)
BEARER = {"authorization": "Bearer a-secret-token"}
JSON = {"content-type": "application/json; charset=utf-8"}


@for_each(
    ("guard", "method", "headers", "query", "status"),
    [
        (SERVER, "GET", BEARER, "", None),
        (SERVER, "GET", {"authorization": "bearer  a-secret-token"}, "", None),
        (SERVER, "POST", BEARER, "", None),
        (SERVER, "DELETE", BEARER, "", None),
        (SERVER, "PUT", BEARER, "", 405),
        (SERVER, "GET", {**BEARER, "host": "eval.lab"}, "", None),
        (SERVER, "GET", {**BEARER, "host": "192.0.2.7:80"}, "", None),
        (SERVER, "GET", {**BEARER, "host": "[2001:db8::1]"}, "", None),
        (SERVER, "GET", {**BEARER, "host": "evil.example"}, "", 403),
        (SERVER, "GET", {**BEARER, "origin": "http://evil.example"}, "", 403),
        (SERVER, "GET", {}, "a-secret-token", 401),
        (SERVER, "GET", {"cookie": "lmms_view_1=a-secret-token"}, "", 401),
        (SERVER, "GET", {"authorization": "a-secret-token"}, "", 401),
        (SERVER, "GET", {"authorization": "Bearer "}, "", 401),
        (OPEN, "GET", {}, "", None),
        (OPEN, "GET", {"authorization": "Bearer "}, "", None),
        (OPEN, "POST", JSON, "", None),
        (OPEN, "DELETE", {}, "", None),
        (OPEN, "POST", {}, "", 415),
        (OPEN, "POST", {"content-type": "text/plain"}, "", 415),
        (OPEN, "POST", {**JSON, "sec-fetch-site": "cross-site"}, "", 403),
        (OPEN, "POST", {**JSON, "origin": "http://127.0.0.1:8000"}, "", None),
        (OPEN, "POST", {**JSON, "origin": "https://127.0.0.1:8000"}, "", None),
        (OPEN, "POST", {**JSON, "origin": "http://[evil"}, "", 403),
        (OPEN, "GET", {"host": "192.0.2.7"}, "", 403),
    ],
)  # fmt: skip
def test_rules_of_a_server(guard: Guard, method: str, headers: dict[str, str], query: str, status: int | None) -> None:
    refusal = guard.refuses(method, {**HOST, **headers}, query)
    assert (None if refusal is None else refusal.status) == status


def test_only_wrong_tokens_are_guesses() -> None:
    wrong = SERVER.refuses("GET", {**HOST, "authorization": "Bearer x"}, "")
    none = SERVER.refuses("GET", HOST, "")
    assert wrong is not None and wrong.is_guess
    assert none is not None and not none.is_guess


def test_a_page_that_writes() -> None:
    page = Guard("8000", "secret-token", methods=METHODS, command="ui")
    known = {**HOST, "cookie": "lmms_ui_8000=secret-token"}
    good = {**known, **JSON, "origin": "http://127.0.0.1:8000"}
    assert page.refuses("POST", good, "") is None
    for headers, status in (
        ({**good, "content-type": "text/plain"}, 415),
        ({**known, **JSON}, 403),
        ({**good, "cookie": ""}, 403),
    ):
        refusal = page.refuses("POST", headers, "secret-token")
        assert refusal is not None and refusal.status == status
