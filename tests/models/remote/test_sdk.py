"""What holds for every back end over a vendor's package: the real packages against a server that speaks their forms."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lmms_eval.api.request import Thoughts
from lmms_eval.errors import ModelError
from lmms_eval.models.remote.sdk import read_address
from tests.cases import for_each
from tests.models.openai.support import make_request
from tests.models.remote.dialects import DIALECTS, ENDINGS, FAILING, KEY, Dialect, Ending, Failing
from tests.servers.stub import StubServer

pytestmark = pytest.mark.filterwarnings("ignore")  # of the packages' own code
PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def cases(pick: Callable[[Dialect], Sequence[Any]], label: Callable[[Any], str]) -> list[Any]:
    """Every dialect with each of its cases."""
    return [
        pytest.param(dialect, case, id=f"{dialect.name}-{label(case)}")
        for dialect in DIALECTS
        for case in pick(dialect)
    ]


each = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


@each
def test_many_requests(dialect: Dialect) -> None:
    dialect.need()
    with StubServer(key=KEY, delay=0.02) as server:
        model = dialect.build(server, num_concurrent=8)
        found = dialect.ask(model, [make_request(number) for number in range(40)])
        stats, head, body = server.stats(), server.heads()[0], server.bodies()[0]
    assert {name: response.text for name, response in found.items()} == {str(n): str(n) for n in range(40)}
    assert stats["total"] == 40 and 2 <= stats["max_in_flight"] <= 8
    assert dialect.target in head and {name: body[name] for name in dialect.greedy} == dialect.greedy
    usage = found["0"].usage
    assert usage is not None and usage.input_tokens and usage.output_tokens and not usage.reasoning_tokens
    record = model.describe()
    assert record["requests"] == record["attempts"] == 40 and record["bytes_sent"] > 0
    assert KEY not in repr(record) + repr(model.identity())


@for_each(
    ("dialect", "case"),
    cases(lambda dialect: (*FAILING, *dialect.failing), lambda case: case.settings["fault"]),
)
def test_failures(dialect: Dialect, case: Failing) -> None:
    dialect.need()
    with StubServer(**case.settings) as server:
        started = time.perf_counter()
        response = dialect.ask_one(server, timeout=0.2 if case.settings["fault"] == "slow" else 20)
        assert time.perf_counter() - started < 10
        assert server.stats()["total"] == case.attempts
    assert response.error is not None and response.error.kind == case.kind
    assert case.words in response.error.message and KEY not in response.error.message


@each
def test_a_refused_key(dialect: Dialect) -> None:
    dialect.need()
    with StubServer(fault="401") as server:
        response = dialect.ask_one(server)
        assert server.stats()["total"] == 1
    assert response.error is not None and response.error.kind == "auth"
    assert dialect.key_words in response.error.message and KEY not in response.error.message


@each
def test_a_server_that_is_not_there(dialect: Dialect) -> None:
    dialect.need()
    response = dialect.ask_one(None, max_retries=5)
    assert response.error is not None and response.error.kind == "connection" and response.attempts == 3
    assert "is the server running" in response.error.message


@for_each(("dialect", "case"), cases(lambda dialect: (*ENDINGS, *dialect.endings), lambda case: case.fault))
def test_endings(dialect: Dialect, case: Ending) -> None:
    dialect.need()
    with StubServer(fault=case.fault) as server:
        response = dialect.ask_one(server)
    assert (response.text, response.finish_reason) == (case.text, case.finish_reason)
    assert response.usage is not None and (response.usage.reasoning_tokens or 0) == case.reasoning_tokens
    if case.fault == "reasoning":
        assert response.thoughts == Thoughts("a thought", is_finished=False)
    else:
        assert response.thoughts is None


@for_each("dialect", [dialect for dialect in DIALECTS if dialect.keys], ids=lambda dialect: dialect.name)
def test_where_the_key_comes_from(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    dialect.need()
    for name in dialect.keys:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match=dialect.keys[0]):
        dialect.build(api_key=None)
    monkeypatch.setenv(dialect.keys[-1], KEY)
    with StubServer(key=KEY) as server:
        assert dialect.ask_one(server, api_key=None).text == "one"


@each
def test_the_identity_holds_what_changes_an_answer(dialect: Dialect) -> None:
    dialect.need()
    plain, other = dialect.build().identity(), dialect.build(system_prompt="Be brief.", max_new_tokens=3).identity()
    changed = {name for name in plain if plain[name] != other[name]}
    assert plain.keys() == other.keys() and changed == {"system_prompt", "max_new_tokens"}
    assert dialect.build(num_concurrent=2, timeout=3).identity() == plain


def set_proxies(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, address)
        monkeypatch.setenv(name.upper(), address)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")


@each
def test_loopback_is_asked_past_proxies(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    dialect.need()
    with StubServer() as proxy, StubServer() as server:
        set_proxies(monkeypatch, f"http://127.0.0.1:{proxy.port}")
        assert dialect.ask_one(server).text == "one"
        assert (server.stats()["total"], proxy.stats()["total"]) == (1, 0)


@each
def test_other_servers_are_asked_through_proxies(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    dialect.need()
    with StubServer() as proxy:
        set_proxies(monkeypatch, f"http://127.0.0.1:{proxy.port}")
        assert dialect.ask_one(None, base_url=f"http://service.example{dialect.path}").text == "one"
        assert "service.example" in proxy.heads()[0]


def test_addresses_are_shown_without_secrets() -> None:
    assert read_address("https://u:p@h:8/x/?key=1", "")[1] == "https://h:8/x/"
    with pytest.raises(ModelError, match="http"):
        read_address("ftp://h", "")
