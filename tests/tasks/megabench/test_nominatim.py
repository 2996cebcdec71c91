from __future__ import annotations

import json
import sqlite3
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.megabench import nominatim
from lmms_eval.tasks.megabench.geocoding import Coordinates, GeocodeTable
from lmms_eval.tasks.megabench.nominatim import PUBLIC_SERVER, AnswerMemory, Nominatim, cache_file, server_url
from tests.cases import for_each

QUERY = {"country": "France", "state": "Île-de-France", "city": "Paris"}
HIT = (200, json.dumps([{"lat": "48.85", "lon": "2.35", "name": "Paris"}]).encode())


@dataclass
class Server:
    """What to answer, one after the other (the last one again and again), and what came."""

    url: str = ""
    answers: list[tuple[int, bytes]] = field(default_factory=lambda: [HIT])
    requests: list[tuple[str, dict[str, list[str]], str | None]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            told.requests.append((path, urllib.parse.parse_qs(query), self.headers["User-Agent"]))
            told.times.append(time.monotonic())
            status, body = told.answers.pop(0) if len(told.answers) > 1 else told.answers[0]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield told
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.fixture
def memory(server: Server, tmp_path: Path) -> AnswerMemory:
    return AnswerMemory(server.url, tmp_path / "cache" / "geocode.db")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nominatim, "INTERVAL_S", 0.01)


def test_a_structured_query_with_a_proper_user_agent(server: Server, memory: AnswerMemory) -> None:
    assert Nominatim(f"{server.url}/", memory).ask(QUERY) == Coordinates(48.85, 2.35)
    ((path, query, agent),) = server.requests
    assert path == "/search"
    assert query == {**{key: [value] for key, value in QUERY.items()}, "format": ["jsonv2"], "limit": ["1"]}
    assert agent is not None and agent.startswith("lmms-eval/")


def test_no_hit_is_no_place(server: Server, memory: AnswerMemory) -> None:
    server.answers = [(200, b"[]")]
    assert Nominatim(server.url, memory).ask(QUERY) is None


@pytest.mark.parametrize(
    ("answer", "attempts"),
    [
        ((503, b""), 3),
        ((429, b""), 3),
        ((403, b"blocked"), 1),
        ((200, b"<html>"), 3),
        ((200, b"{}"), 3),
        ((200, b'[{"lat": "x", "lon": "1"}]'), 3),
        ((200, b'[{"lat": "1"}]'), 3),
        ((200, b"[5]"), 3),
        ((200, b" " * (nominatim.MAX_REPLY_BYTES + 1)), 3),
    ],
    ids=lambda value: str(value)[:40],
)
@pytest.mark.usefixtures("quick")
def test_failures_are_no_score(server: Server, memory: AnswerMemory, answer: tuple[int, bytes], attempts: int) -> None:
    server.answers = [answer]
    with pytest.raises(NotEvaluated, match="gave no answer"):
        Nominatim(server.url, memory).locate(QUERY)
    assert len(server.requests) == attempts
    with pytest.raises(KeyError):
        memory.find(QUERY)
    with pytest.raises(NotEvaluated, match="gave no answer"):  # a failure is never kept
        Nominatim(server.url, memory).locate(QUERY)
    assert len(server.requests) == 2 * attempts


def test_only_places_that_neither_table_nor_memory_has_are_asked_for(server: Server, memory: AnswerMemory) -> None:
    server.answers = [(200, b"[]")]
    entry = {"query": {"country": "France", "city": "Lyon"}, "lat": 45.75, "lon": 4.85}
    geocoder = Nominatim(server.url, memory, GeocodeTable.from_entries([entry]))
    assert geocoder.locate({"country": "France", "city": "Lyon"}) == Coordinates(45.75, 4.85)
    assert geocoder.locate(QUERY) is geocoder.locate(QUERY) is None
    assert len(server.requests) == 1


@pytest.mark.usefixtures("quick")
def test_a_server_that_is_away_or_recovers(server: Server, memory: AnswerMemory) -> None:
    server.answers = [(500, b""), (200, b"nonsense"), HIT]
    assert Nominatim(server.url, memory).ask(QUERY) == Coordinates(48.85, 2.35)
    with pytest.raises(NotEvaluated, match="gave no answer"):
        Nominatim("http://127.0.0.1:9", memory).ask(QUERY)


def test_answers_outlive_the_process_and_belong_to_a_server(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "geocode.db"
    first = AnswerMemory(server.url, path)
    first.keep(QUERY, Coordinates(1.5, -2.5))
    first.keep({"city": "x"}, None)
    again, other = AnswerMemory(server.url, path), AnswerMemory("nominatim", path)
    assert again.find(dict(reversed(QUERY.items()))) == Coordinates(1.5, -2.5)
    assert again.find({"city": "x"}) is None
    with pytest.raises(KeyError):
        other.find(QUERY)


def test_a_question_is_asked_once(server: Server, memory: AnswerMemory) -> None:
    chain = Nominatim(server.url, memory)
    assert [chain.locate(QUERY) for _ in range(3)] == [Coordinates(48.85, 2.35)] * 3
    assert len(server.requests) == 1


def test_turns_are_a_second_apart_for_all_processes(tmp_path: Path) -> None:
    path = tmp_path / "geocode.db"
    one, two = AnswerMemory("nominatim", path), AnswerMemory("nominatim", path)
    other = AnswerMemory("http://127.0.0.1:1", path)
    assert [one.take_turn(100.0), two.take_turn(100.0), one.take_turn(100.2), other.take_turn(100.0)] == [
        100.0, 101.0, 102.0, 100.0,
    ]  # fmt: skip
    assert two.take_turn(500.0) == 500.0
    assert one.take_turn(10.0) == 10.0  # the clock was set back by minutes


def test_requests_wait_for_their_turn(server: Server, memory: AnswerMemory) -> None:
    waits: list[float] = []
    for city in ("a", "b", "c"):
        Nominatim(server.url, memory, sleep=waits.append).ask({"country": "x", "city": city})
    assert waits[0] == 0
    assert waits[1] == pytest.approx(1, abs=0.5) and waits[2] == pytest.approx(2, abs=0.5)


@for_each("kind", ["a file in the way", "damaged"])
def test_without_a_usable_file_this_process_remembers(tmp_path: Path, kind: str) -> None:
    (tmp_path / "way").write_text("no folder, no database" * 100)
    path = tmp_path / "way" / "geocode.db" if kind == "a file in the way" else tmp_path / "way"
    memory = AnswerMemory("nominatim", path)
    with pytest.raises(KeyError):
        memory.find(QUERY)
    memory.keep(QUERY, None)
    assert memory.find(QUERY) is None
    assert [memory.take_turn(5.0), memory.take_turn(5.0)] == [5.0, 6.0]
    with pytest.raises(KeyError):
        AnswerMemory("nominatim", path).find(QUERY)


def test_a_locked_file_is_waited_for_and_then_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nominatim, "LOCK_TIMEOUT_S", 0.05)
    path = tmp_path / "geocode.db"
    AnswerMemory("nominatim", path).keep(QUERY, None)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("begin exclusive")
    assert AnswerMemory("nominatim", path).take_turn(3.0) == 3.0
    holder.close()


def test_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert server_url("nominatim") == PUBLIC_SERVER
    assert server_url("http://127.0.0.1:1/") == "http://127.0.0.1:1"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_file() == tmp_path / "lmms_eval/geocode.db"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_file() == tmp_path / ".cache/lmms_eval/geocode.db"
