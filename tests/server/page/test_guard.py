"""What the page's server refuses, with a real process."""

from __future__ import annotations

import http.client
import json
import socket
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from lmms_eval.cli.main import main
from tests import forks
from tests.cases import for_each
from tests.server.page.conftest import Page, page_of

BODY = {"model": "baseline", "tasks": ["quiz"]}


@pytest.fixture(scope="module")
def cookie(page: Page) -> str:
    status, headers, _ = asked(page, "GET", f"/?{page.token}", {})
    assert status == 303 and headers["location"] == "/"
    assert "HttpOnly" in headers["set-cookie"] and "SameSite=Strict" in headers["set-cookie"]
    return headers["set-cookie"].partition(";")[0]


def asked(
    page: Page, method: str, path: str, headers: dict[str, str], body: bytes | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Send a request with exactly these headers; an own Host counts."""
    place = urlsplit(page.root)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=30)
    connection.putrequest(method, path, skip_host="host" in headers, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("content-length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content


READ = (
    "/",
    "/ui/offer",
    "/ui/jobs",
    "/jobs/x/log",
    "/queue",
    "/docs",
    "/openapi.json",
    "/view/x/",
    "/pages/x/index.html",
)


@pytest.mark.parametrize("path", READ)
def test_nothing_is_read_without_the_token(page: Page, path: str) -> None:
    for headers in ({}, {"cookie": "lmms_ui_1=x"}, {"authorization": "Bearer wrong"}):
        status, sent, content = asked(page, "GET", path, headers)
        assert status == 403
        assert b"lmms-eval ui has printed" in content
        assert "set-cookie" not in sent


def test_pages_of_others_are_refused(page: Page, cookie: str) -> None:
    origin = page.root.rstrip("/")
    good = {"cookie": cookie, "origin": origin, "content-type": "application/json", "sec-fetch-site": "same-origin"}
    body = json.dumps(BODY).encode()
    before = len(page.jobs())
    table: list[tuple[dict[str, str], int]] = [
        ({**good, "host": "evil.example:80"}, 403),
        ({**good, "host": f"evil.example:{urlsplit(origin).port}"}, 403),
        ({**good, "origin": "http://evil.example"}, 403),
        ({**good, "origin": "null"}, 403),
        ({**good, "sec-fetch-site": "cross-site"}, 403),
        ({**good, "sec-fetch-site": "same-site"}, 403),
        ({**good, "content-type": "text/plain"}, 415),
        ({**good, "content-type": "application/x-www-form-urlencoded"}, 415),
        ({name: value for name, value in good.items() if name != "content-type"}, 415),
        ({name: value for name, value in good.items() if name != "origin"}, 403),
        ({name: value for name, value in good.items() if name != "cookie"}, 403),
    ]
    for headers, expected in table:
        for path in ("/eval/start", "/evaluate"):
            assert asked(page, "POST", path, headers, body)[0] == expected, (headers, path)
    assert asked(page, "POST", f"/eval/start?{page.token}", {"content-type": "application/json"}, body)[0] == 403
    assert len(page.jobs()) == before
    assert asked(page, "POST", "/eval/preview", good, body)[0] == 200


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"env_setup": "touch /tmp/x; true"}, 400, "no commands"),
    ({"env_vars": "OPENAI_API_KEY=sk-canarycanary"}, 400, "environment of the server"),
    ({"model_args": {"api_key": "sk-canarycanarycanary"}}, 403, "environment"),
    ({"trust_remote_code": True}, 403, "--allow_code"),
    ({"include_path": "/tmp"}, 403, "--allow_code"),
    ({"tasks": ["../../etc/passwd"]}, 403, "--allow_code"),
    ({"output_dir": "/etc"}, 403, "--allow_path"),
    ({"output_path": "/etc"}, 403, "--allow_path"),
    ({"config": "/etc/passwd"}, 400, "no file of the server"),
    ({"model_args": {"path": "/etc/passwd"}}, 403, "--allow_path"),
    ({"no_such": 1}, 422, "unknown field"),
]


@pytest.mark.parametrize(("more", "status", "text"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_no_request_may_ask(page: Page, more: dict[str, Any], status: int, text: str) -> None:
    before = len(page.jobs())
    with page.client() as client:
        answer = client.post("eval/start", json={**BODY, **more})
        assert (answer.status_code, text in answer.text) == (status, True), answer.text
        assert "canary" not in answer.text
        shown = client.post("eval/preview", json={**BODY, **more}).json()
        assert shown["problems"]
        assert "canary" not in json.dumps(shown)
    assert len(page.jobs()) == before


@pytest.mark.parametrize(
    "path",
    [
        "/pages/../jobs/index.html", "/pages/..%2f..%2f/server.lock", "/pages/%2e%2e/index.html",
        "/pages/x/../../etc/passwd", "/pages//etc/passwd",
        "/view/../ui/", "/view/%2e%2e/", "/tasks/..%2f..%2fsetup/yaml", "/ui/jobs/..%2f..",
        "/logs/runs/..%2f../results", "/ui/jobs/x/log?from=-1", "/ui/jobs/x/log?from=1e9",
    ],
)  # fmt: skip
def test_no_path_leads_elsewhere(page: Page, path: str) -> None:
    status, _, content = asked(page, "GET", path, {"authorization": f"Bearer {page.token}"})
    assert status in (400, 404)
    assert b"root:" not in content


def test_large_and_broken_bodies(page: Page) -> None:
    with page.client() as client:
        assert client.post("eval/preview", content=b"{" + b" " * (2 << 20)).status_code == 413
        for body in (b"", b"[]", b"nonsense", b"[" * 100_000):
            assert client.post("eval/preview", content=body).status_code == 400


def test_every_answer_is_strict(page: Page, cookie: str) -> None:
    for path in ("/", "/ui.js", "/ui/offer", "/docs", "/nothing"):
        _, headers, _ = asked(page, "GET", path, {"cookie": cookie})
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
    _, headers, content = asked(page, "GET", "/", {"cookie": cookie})
    assert b"<style" not in content and b"<script>" not in content
    assert "'unsafe-inline'" not in headers["content-security-policy"]
    assert page.token.encode() not in content


@pytest.mark.parametrize(
    ("request_", "name", "text"),
    [
        ({"model": "hf", "tasks": ["quiz"]}, "model_args", "needs the argument pretrained"),
        ({"model": "baselin", "tasks": ["quiz"]}, "model", "baseline"),
        ({"model": "baseline", "tasks": ["quizz"]}, "tasks", "quiz"),
        ({"model": "openai", "model_args": {"model": "m", "base_url": "http://x.invalid"}, "tasks": ["quiz"]},
         "model_args", "--allow_path"),
        ({"model": "baseline", "tasks": ["quiz"], "gen_kwargs": "temperatur=0"}, "gen_kwargs", "did you mean 'temper"),
    ],
)  # fmt: skip
def test_what_would_fail_is_said_before(page: Page, request_: dict[str, Any], name: str, text: str) -> None:
    with page.client() as client:
        (problem,) = client.post("eval/preview", json=request_).json()["problems"]
        assert problem["name"] == name and text in problem["text"]


def test_the_familys_endpoints(page: Page) -> None:
    with page.client() as client:
        shown = client.post("eval/preview", json=BODY).json()
        assert shown["command"].startswith("lmms-eval") and shown["problems"] == []
        assert client.post("eval/export-yaml", json=BODY).json()["yaml"].startswith("model: baseline")
        read = client.post("eval/import-yaml", json={"yaml": shown["yaml"]}).json()
        assert read == {"request": BODY, "problems": []}
        assert "task: quiz" in client.get("tasks/quiz/yaml").text
        key = {"Idempotency-Key": "the same"}
        started = [client.post("eval/start", json=BODY, headers=key).json() for _ in range(3)]
        assert len({one["job_id"] for one in started}) == 1
        job = started[0]["job_id"]
        empty = {"env_vars": "", "env_setup": "", "limit": None, "output_path": "", "model_args": ""}
        assert client.post("eval/start", json={**BODY, **empty}, headers=key).json()["job_id"] == job
        assert client.post("eval/start", json={**BODY, "limit": 1}, headers=key).status_code == 409
        with client.stream("GET", f"eval/{job}/stream") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            kinds = [line.partition(": ")[2] for line in stream.iter_lines() if line.startswith("event: ")]
        assert kinds[-1] == "done" and "output" in kinds
        assert [one["job_id"] for one in client.get("logs/runs").json()["runs"]].count(job) == 1
        assert client.get(f"logs/runs/{job}/results").json()["scores"][0]["value"] == 1
        samples = client.get(f"logs/runs/{job}/samples/quiz", params={"offset": 38, "limit": 10}).json()
        assert (samples["total"], len(samples["samples"])) == (40, 2)
        assert client.post(f"eval/{job}/stop").status_code == 400
        assert client.post("eval/nothing/stop").status_code == 404


def test_a_stop_ends_a_running_one_and_the_stream_says_so(page: Page) -> None:
    with page.client() as client:
        job = client.post("eval/start", json={"model": "baseline", "tasks": ["slow_quiz"]}).json()["job_id"]
        while client.get(f"jobs/{job}").json()["status"] != "running":
            time.sleep(0.1)
        assert client.post(f"eval/{job}/stop", json={}).status_code == 200
        with client.stream("GET", f"eval/{job}/stream") as stream:
            kinds = [line.partition(": ")[2] for line in stream.iter_lines() if line.startswith("event: ")]
        assert kinds[-1] == "stopped"
        assert client.get(f"jobs/{job}").json()["status"] == "cancelled"


def test_keys_are_never_told(tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789-canary")
    with page_of(tmp_path, "--include_path", str(tasks)) as page, page.client() as client:
        job = client.post("eval/start", json=BODY).json()["job_id"]
        for path in ("ui/offer", "ui/models/openai", "ui/machine", "ui/jobs", f"ui/jobs/{job}", f"ui/jobs/{job}/log"):
            assert "canary" not in client.get(path, timeout=120).text
        with client.stream("GET", f"eval/{job}/stream") as stream:
            assert "canary" not in "".join(stream.iter_lines())
        assert page.end() == 0
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"canary" not in file.read_bytes(), file


def test_a_port_in_use_is_one_line(page: Page, tmp_path: Path) -> None:
    words = ["ui", "--port", str(urlsplit(page.root).port), "--folder", str(tmp_path)]
    done = forks.run("-m", "lmms_eval", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "in use" in done.stderr


def test_the_port_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv("LMMS_SERVER_PORT", str(port))
    with page_of(tmp_path / "server", "--no_browser") as named:
        assert urlsplit(named.root).port == port
        with page_of(tmp_path / "other", "--no_browser", "--port", "0") as other:
            assert urlsplit(other.root).port != port


@for_each("value", ["eight", "65536", "-1", "\u0663", "8" * 5000])
def test_a_wrong_port_of_the_environment(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LMMS_SERVER_PORT", value)
    assert main(["ui", "--folder", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1) and "LMMS_SERVER_PORT" in told.err and len(told.err) < 300


def test_starts_are_bounded(tmp_path: Path) -> None:
    with page_of(tmp_path / "server", "--no_browser", "--submissions_per_minute", "1") as page, page.client() as client:
        body = {**BODY, "tasks": ["mme"]}
        assert client.post("eval/start", json=body).status_code == 200
        answer = client.post("eval/start", json=body)
        assert (answer.status_code, int(answer.headers["retry-after"]) > 1) == (429, True), answer.text
        assert client.post("evaluate", json=body).status_code == 429  # the same bound for both ways in


def test_no_preview_tells_what_is_on_this_machine(page: Page, tmp_path: Path) -> None:
    """A refused path is neither looked at nor read, in whatever option and form it comes."""
    (tmp_path / "there").write_text("1,2,3-canarytext")
    (tmp_path / "there.jsonl").write_text("{}")
    names = ("baseline", "data_root", "geocode_table", "human_scores", "ids", "judge_prompts", "nltk_data", "until")
    with page.client() as client:
        for name in (*names, "allow_media", "judge_model"):
            for form in ("{}", "{}.jsonl", "decided:{}", "hf:{}"):
                told = []
                for file in ("there", "absent"):
                    value = form.format(tmp_path / file)
                    shown = client.post("eval/preview", json={**BODY, name: value}).json()
                    read = client.post("eval/import-yaml", json={"yaml": f"model: m\ntasks: [a]\n{name}: '{value}'\n"})
                    assert shown["problems"] and "canary" not in json.dumps(shown) + read.text
                    told.append((json.dumps(shown).replace(file, ""), read.text.replace(file, "")))
                assert told[0] == told[1], (name, form)
