"""The security table, each line with a real server: what is refused, what is bounded, and what never leaves."""

from __future__ import annotations

import http.client
import io
import json
import selectors
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from benchmarks.workload import text_task
from lmms_eval.server.events import MOST_STREAMS
from lmms_eval.server.requests import body_type
from tests.server.process import ROOT, ServerProcess, running_server

PLUGIN = Path(__file__).parent
CANARY = "canary-7Yq20xVb"
KEYS = ("OPENAI_API_KEY", "HF_TOKEN", "ANTHROPIC_API_KEY", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "LAB_PASSWORD")
TOKEN = f"{CANARY}-of-the-server"
BODY = {"model": "faulty", "tasks": ["bench_text"]}
JSON = {"content-type": "application/json"}


def _words(work: Path) -> tuple[str, ...]:
    text_task(work / "tasks", 12)
    (work / "allowed").mkdir()
    (work / "allowed" / "link").symlink_to("/etc")
    return (
        "--include_path", str(work / "tasks"), "--plugins", "faulty_plugin", "--grace", "2",
        "--allow_path", str(work / "allowed"), "--allow_path", str(work), "--parallel", "3",
    )  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server as a person starts it: loopback, no token."""
    work = tmp_path_factory.mktemp("open")
    words = (*_words(work), "--submissions_per_minute", "1000000")
    with running_server(work / "server", *words, PYTHONPATH=str(PLUGIN)) as running:
        yield running


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    """A service that refuses, and says with what key it was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            given = self.headers.get("authorization", "")
            text = json.dumps({"error": {"message": f"you sent {given}, that is {given.removeprefix('Bearer ')}"}})
            self.send_response(401)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    service = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{service.server_address[1]}/v1"
    service.shutdown()
    service.server_close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, echo: str) -> Iterator[ServerProcess]:
    """A server that other machines reach, with a token, and with secrets in its environment."""
    work = tmp_path_factory.mktemp("guarded")
    words = (*_words(work), "--host", "0.0.0.0", "--allow_host", "eval.lab", "--allow_path", echo)
    variables = {name: f"{CANARY}-{name.lower()}" for name in KEYS}
    more = {"LMMS_EVAL_SERVER_TOKEN": TOKEN, "PYTHONPATH": str(PLUGIN), **variables}
    with running_server(work / "server", *words, **more) as running:
        yield running


def _port(server: ServerProcess) -> int:
    return int(server.client.base_url.port or 0)


def asked(
    server: ServerProcess, method: str, path: str, headers: dict[str, str] | None = None, body: bytes | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Send a request with exactly these headers; an own Host counts."""
    connection = http.client.HTTPConnection("127.0.0.1", _port(server), timeout=30)
    sent = headers or {}
    connection.putrequest(method, path, skip_host="host" in sent, skip_accept_encoding=True)
    for name, value in sent.items():
        connection.putheader(name, value)
    if body is not None and "transfer-encoding" not in sent and "content-length" not in sent:
        connection.putheader("content-length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content


def _jobs(server: ServerProcess) -> int:
    return len([*(server.folder / "jobs").iterdir()])


def test_no_address_beyond_loopback_without_a_token(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lmms_eval", "serve", "--port", "0", "--folder", str(tmp_path / "s")]
    short, absent = tmp_path / "short", tmp_path / "absent"
    short.write_text("short")
    short.chmod(0o600)
    for words, part in (
        (["--host", "0.0.0.0"], "--token_file"),
        (["--token_file", str(short)], "at least 16"),
        (["--token_file", str(absent)], "absent"),
    ):
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=60, cwd=ROOT)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
        assert part in done.stderr


@pytest.mark.parametrize("path", ["/health", "/queue", "/jobs/x", "/jobs/x/events", "/metrics", "/docs", "/evaluate"])
def test_nothing_without_the_token(guarded: ServerProcess, path: str) -> None:
    method = "POST" if path == "/evaluate" else "GET"
    body = json.dumps(BODY).encode() if method == "POST" else None
    for headers, address in (
        ({}, path),
        ({}, f"{path}?{TOKEN}"),
        ({}, f"{path}?token={TOKEN}"),
        ({"cookie": f"lmms_serve_{_port(guarded)}={TOKEN}"}, path),
        ({"authorization": f"Basic {TOKEN}"}, path),
        ({"authorization": f"Bearer {TOKEN}x"}, path),
    ):
        status, sent, content = asked(guarded, method, address, {**JSON, **headers}, body)
        assert status in (401, 429), (headers, content)
        assert "set-cookie" not in sent
        assert status == 429 or sent["www-authenticate"] == "Bearer"
    assert asked(guarded, "GET", "/health", {"authorization": f"Bearer {TOKEN}"})[0] in (200, 429)


def test_guesses_are_bounded(guarded: ServerProcess) -> None:
    answers = [asked(guarded, "GET", "/health", {"authorization": f"Bearer {number}"}) for number in range(40)]
    assert {status for status, _, _ in answers} <= {401, 429}
    status, headers, content = answers[-1]
    assert status == 429 and int(headers["retry-after"]) >= 1, content
    assert asked(guarded, "GET", "/health", {"authorization": f"Bearer {TOKEN}"})[0] == 429  # so that no guess tells
    while asked(guarded, "GET", "/health", {"authorization": f"Bearer {TOKEN}"})[0] == 429:
        time.sleep(0.5)


def test_names_under_which_a_server_is_asked(server: ServerProcess, guarded: ServerProcess) -> None:
    port = _port(server)
    for host, status in (
        (f"127.0.0.1:{port}", 200), (f"localhost:{port}", 200), ("[::1]", 200), ("localhost:9", 200),
        (f"evil.example:{port}", 403), ("127.0.0.1.evil.example", 403), ("10.0.0.1", 403), ("", 403),
        ("user@localhost", 403), ("localhost:x", 403),
    ):  # fmt: skip
        assert asked(server, "GET", "/health", {"host": host})[0] == status, host
    known = {"authorization": f"Bearer {TOKEN}"}
    for host, status in (("10.0.0.1:80", 200), ("eval.lab", 200), ("EVAL.lab:8000", 200), ("evil.example", 403)):
        assert asked(guarded, "GET", "/health", {"host": host, **known})[0] == status, host


def test_pages_of_other_sites_neither_post_nor_read(server: ServerProcess) -> None:
    body, before = json.dumps(BODY).encode(), _jobs(server)
    own = f"http://127.0.0.1:{_port(server)}"
    preflight = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    for method, path, headers, status in (
        ("POST", "/evaluate", {"origin": "https://evil.example", "content-type": "text/plain"}, 403),
        ("POST", "/evaluate", {"origin": "https://evil.example", **JSON}, 403),
        ("POST", "/evaluate", {"origin": "null", **JSON}, 403),
        ("POST", "/evaluate", {"origin": "http://127.0.0.1:1", **JSON}, 403),
        ("POST", "/evaluate", {"sec-fetch-site": "cross-site", **JSON}, 403),
        ("POST", "/evaluate", {"sec-fetch-site": "same-site", **JSON}, 403),
        ("POST", "/evaluate", {"content-type": "text/plain"}, 415),
        ("POST", "/evaluate", {"content-type": "application/x-www-form-urlencoded"}, 415),
        ("POST", "/evaluate", {"content-type": "multipart/form-data; boundary=application/json"}, 415),
        ("POST", "/evaluate", {}, 415),
        ("POST", "/merge", {"content-type": "text/plain"}, 415),
        ("OPTIONS", "/evaluate", {"origin": "https://evil.example", **preflight}, 403),
        ("DELETE", "/jobs/x", {"origin": "https://evil.example"}, 403),
        ("GET", "/queue", {"origin": "https://evil.example"}, 403),
        ("GET", "/queue", {"sec-fetch-site": "cross-site"}, 403),
        ("GET", "/queue", {"sec-fetch-site": "same-origin", "origin": own}, 200),
        ("TRACE", "/queue", {}, 405),
        ("INVENTED", "/queue", {}, 405),
    ):  # fmt: skip
        found, sent, content = asked(server, method, path, headers, body if method == "POST" else None)
        assert found == status, (method, headers, content)
        assert not any(name.startswith("access-control") for name in sent)
        assert sent["x-content-type-options"] == "nosniff" and sent["cross-origin-resource-policy"] == "same-origin"
    assert _jobs(server) == before


def _leading_elsewhere(server: ServerProcess) -> list[str]:
    allowed = server.folder.parent / "allowed"
    return [
        "/etc/passwd", "../../../etc/passwd", "a/../../b", "~root/x", "a\\..\\..\\b", "file:///etc/passwd", "a\0b",
        f"{allowed}/../../x", f"{allowed}/link/passwd", f"{allowed}/{'n' * 300}", f"{allowed}/{'n/' * 3000}",
        f"{server.folder}/jobs/x", "//example.org/share",
    ]  # fmt: skip


def test_no_field_leads_elsewhere(server: ServerProcess) -> None:
    before, texts = _jobs(server), _leading_elsewhere(server)
    whole = ("model_args", "output_dir", "judge_prompts", "allow_media")
    for name, text in ((key, one) for key in body_type().model_fields for one in texts[: 99 if key in whole else 2]):
        forms: list[Any] = [text, [text]] if name == "tasks" else [text]
        if name.endswith(("_args", "_kwargs")):
            forms += [{"a": text}, {"a": [{"b": text}]}, f"a={text}", {text: 1}, {"a": json.dumps({"b": text})}]
        for form in forms:
            answer = server.client.post("/evaluate", json={**BODY, name: form})
            assert answer.status_code in (400, 403, 422), (name, form, answer.text)
    for text in texts:
        for body in (
            {"checkpoint_path": text},
            {"checkpoint_path": f"{server.folder.parent}/allowed", "output_path": text},
        ):
            answer = server.client.post("/merge", json=body)
            assert answer.status_code in (400, 403), (body, answer.text)
    assert _jobs(server) == before


def test_no_url_leads_elsewhere(server: ServerProcess) -> None:
    job = server.submit(**BODY, limit=2)
    assert server.wait(job)["status"] == "completed"
    (server.folder / "jobs" / job / "output" / "link").symlink_to("/etc")
    plain = ["..", "../../jobs.sqlite", "../job.json", "/etc/passwd", "link/passwd", "a\0b", "n" * 5000, "%2e%2e"]
    for text in (form for one in plain for form in (one, quote(one, safe=""), quote(one, safe="").replace(".", "%2e"))):
        text = text.replace("\0", "%00")
        for path in (
            *(f"/jobs/{text}{more}" for more in ("", "/log", "/files", "/events", "/results")), f"/{text}",
            *(f"/jobs/{job}/{more}{text}" for more in ("files/", "samples?task=", "samples?where=", "log?tail=")),
            f"/jobs/{job}/events?last_event_id={text}",
        ):  # fmt: skip
            status, _, content = asked(server, "GET", path)
            assert status in (400, 404, 422), (path, content[:300])
            assert b"root:" not in content and b"SQLite" not in content
    for path in (f"/jobs/{job}", "/queue", "/tasks"):
        assert asked(server, "GET", path)[0] == 200


def test_arguments_bring_no_options_in(server: ServerProcess) -> None:
    before = _jobs(server)
    for form in (
        "pretrained=x,trust_remote_code=True", 'pretrained="x,trust_remote_code=True"',
        "pretrained=x, trust_remote_code=1", "pretrained='x', trust_remote_code=1", "a=[b,trust_remote_code=1]",
        {"pretrained": "x,trust_remote_code=True"}, {"pretrained": "x", "Trust-Remote-Code": 1},
        {"a": {"b": ["c", {"trust_remote_code": True}]}}, {"a": '{"trust_remote_code": true}'},
        {"a": '"{\\"trust_remote_code\\": true}"'}, {"a": "[[{\"worker_cls\": \"os.system\"}]]"},
        {"a": "b=c,api_key=k"}, {"a": "b=/etc/passwd"}, {"a": "b=1;path='/etc/passwd'"},
        {"kv_connector_module_path": "os"},
        {"base_url": "169.254.169.254/latest"}, {"judge": {"api_base": "localhost:1"}},
        {"a": "b=http://169.254.169.254/"},
    ):  # fmt: skip
        for name in ("model_args", "judge_args", "t2i_args"):
            answer = server.client.post("/evaluate", json={**BODY, name: form})
            assert answer.status_code == 403, (name, form, answer.text)
    for name, value in (
        ("hf_hub_log_args", "push_results_to_hub=true"),
        ("wandb_args", "project=p"), ("swanlab_args", {"project": "p"}),
        ("launcher_args", "model=m"), ("geocoder", "10.0.0.1:80"),
    ):  # fmt: skip
        answer = server.client.post("/evaluate", json={**BODY, name: value})
        assert answer.status_code == 403, (name, answer.text)
    assert _jobs(server) == before
    # Whatever passes is data: words of a command line in it are read as no option.
    text = "a b --limit 1\n--output_path x: {y: !!python/object:os.system z}"
    job = server.submit(**BODY, limit=2, system_instruction=text)
    told = server.wait(job)
    assert told["status"] == "completed", told
    (files,) = told["result"].values()
    arguments = json.loads(Path(files["results"]).read_text())["config"]["resolved_cli_args"]
    assert (arguments["system_instruction"], arguments["limit"]) == (text, 2)


def test_large_and_deep_bodies(server: ServerProcess) -> None:
    before, padding = _jobs(server), b" " * (2 << 20)
    whole = json.dumps(BODY).encode() + padding
    for path in ("/evaluate", "/merge"):
        assert asked(server, "POST", path, JSON, whole)[0] == 413
        chunked = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (whole[:9], whole[9:])) + b"0\r\n\r\n"
        assert asked(server, "POST", path, {**JSON, "transfer-encoding": "chunked"}, chunked)[0] == 413
        assert asked(server, "POST", path, {**JSON, "content-length": str(1 << 40)}, b"")[0] == 413
        for body in (
            b"[" * 500_000,
            b'{"a":' * 1000 + b"1" + b"}" * 1000,
            b'{"model_args":' + b"[" * 40 + b"]" * 40 + b"}",
        ):
            assert asked(server, "POST", path, JSON, body)[0] in (400, 422)
    assert asked(server, "GET", "/health", {"x": "y" * 100_000})[0] in (400, 431)
    assert server.client.post("/evaluate", json=BODY, headers={"Idempotency-Key": "k" * 500}).status_code == 400
    assert _jobs(server) == before


def _drip(port: int, head: bytes, ended: dict[str, bytes], name: str) -> None:
    """Send a byte now and then until the server has had enough, and note what it said."""
    with socket.create_connection(("127.0.0.1", port), timeout=0.25) as connection:
        answer = b""
        try:
            connection.sendall(head)
            for _ in range(400):
                try:
                    piece = connection.recv(4096)
                except TimeoutError:
                    connection.sendall(b"x")
                    continue
                if not piece:
                    break
                answer += piece
        except OSError:
            pass
        else:
            ended[name] = answer
            return
        ended[name] = answer


@pytest.fixture(scope="module")
def slow(server: ServerProcess) -> tuple[list[threading.Thread], dict[str, bytes]]:
    """Clients that send very slowly, from the first test on."""
    heads = {
        "silent": b"",
        "head": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ",
        "body": b"POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 1000\r\n\r\n",
        "chunks": b"POST /merge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nfff\r\n",
    }
    ended: dict[str, bytes] = {}
    threads = [
        threading.Thread(target=_drip, args=(_port(server), head, ended, name), daemon=True)
        for name, head in heads.items()
    ]
    for thread in threads:
        thread.start()
    return threads, ended


@pytest.mark.usefixtures("slow")
def test_a_thousand_event_streams_leave_the_server_answering(server: ServerProcess) -> None:
    job = server.submit(**BODY, model_args={"mode": "hang"})
    server.wait(job, "running")
    request = f"GET /jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    streams = [socket.create_connection(("127.0.0.1", _port(server))) for _ in range(MOST_STREAMS)]
    began: dict[socket.socket, bytes] = {stream: b"" for stream in streams}
    try:
        with selectors.DefaultSelector() as selector:
            for stream in streams:
                stream.sendall(request)
                selector.register(stream, selectors.EVENT_READ)
            deadline = time.monotonic() + 30
            while selector.get_map() and time.monotonic() < deadline:
                for key, _ in selector.select(1):
                    stream = key.fileobj
                    assert isinstance(stream, socket.socket)
                    began[stream] += stream.recv(4096)
                    if b"event: state" in began[stream]:
                        selector.unregister(stream)
        assert sum(b"200 OK" in text and b"event: state" in text for text in began.values()) == MOST_STREAMS
        for _ in range(20):
            assert server.client.get("/health").status_code == 200
        status, headers, content = asked(server, "GET", f"/jobs/{job}/events")
        assert (status, int(headers["retry-after"]) > 0) == (503, True), content
        assert server.client.delete(f"/jobs/{job}").status_code == 202
        assert server.wait(job)["status"] == "cancelled"
    finally:
        for stream in streams:
            stream.close()
    for _ in range(100):
        if asked(server, "GET", f"/jobs/{job}/events")[0] == 200:
            return
        time.sleep(0.1)
    raise AssertionError("closed streams hold their places")


def test_no_secret_leaves(guarded: ServerProcess, echo: str) -> None:
    sent: list[bytes] = []
    for more in (
        {"model_args": {"mode": "leak"}},
        {"model_args": {"mode": "raise"}},
        {"model": "openai", "model_args": {"model": "m", "base_url": echo, "max_retries": 0}},
    ):
        job = guarded.submit(**{**BODY, "limit": 2, "verbosity": "DEBUG", **more})
        guarded.wait(job)
        for path in ("", "/results", "/samples", "/log", "/events"):
            sent.append(guarded.client.get(f"/jobs/{job}{path}").content)
        archive = zipfile.ZipFile(io.BytesIO(guarded.client.get(f"/jobs/{job}/files").content))
        sent += [archive.read(name) for name in archive.namelist()]
    assert any(b"you sent" in text for text in sent)  # the service was asked, and its answer noted
    sent += [
        guarded.client.get(path).content for path in ("/metrics", "/version", "/queue", "/openapi.json", "/models")
    ]
    sent.append(guarded.client.post("/evaluate", json={**BODY, "seed": [TOKEN]}).content)
    assert len(sent) > 20
    assert not [text for text in sent if CANARY.encode() in text]
    written = {path: path.read_bytes() for path in guarded.folder.rglob("*") if path.is_file()}
    assert len(written) > 20
    assert not [path for path, content in written.items() if CANARY.encode() in content]
    assert CANARY not in guarded.log


def test_who_is_elsewhere_reads_no_paths_of_this_machine(guarded: ServerProcess) -> None:
    elsewhere = {"x-forwarded-for": "203.0.113.9"}
    done, failed = guarded.submit(**BODY, limit=2), guarded.submit(**BODY, limit=2, model_args={"mode": "raise"})
    (here,) = guarded.wait(done)["result"].values()
    assert Path(here["results"]).is_file()
    told = guarded.client.get(f"/jobs/{done}", headers=elsewhere).json()
    (files,) = told["result"].values()
    for name in (files["results"], *files["samples"]):
        assert not name.startswith("/")
        assert guarded.client.get(f"/jobs/{done}/files/{name}", headers=elsewhere).status_code == 200
    assert sys.executable in str(guarded.wait(failed)["error"])
    texts = [guarded.client.get(f"/jobs/{failed}{path}", headers=elsewhere).text for path in ("", "/log", "/events")]
    texts.append(guarded.client.post("/evaluate", json={**BODY, "output_dir": "/etc/x"}, headers=elsewhere).text)
    texts.append(json.dumps(told))
    for text in texts:
        assert str(guarded.folder) not in text and sys.executable not in text


@pytest.mark.usefixtures("server")
def test_slow_clients_are_ended(slow: tuple[list[threading.Thread], dict[str, bytes]]) -> None:
    threads, ended = slow
    for thread in threads:
        thread.join(45)
    assert ended["silent"].partition(b"\r\n")[0] in (b"", b"HTTP/1.1 400 Bad Request")
    assert ended["head"] == b""
    assert b" 408 " in ended["body"] and b" 408 " in ended["chunks"]


def test_a_client_that_submits_too_often_is_told_when_to_go_on(tmp_path: Path) -> None:
    words = ("--submissions_per_minute", "6", "--max_queued_jobs", "2", *_words(tmp_path))
    with running_server(tmp_path / "server", *words, "--parallel", "1", PYTHONPATH=str(PLUGIN)) as running:
        running.wait(running.submit(**BODY, model_args={"mode": "hang"}), "running")
        for key, status in (("a", 200), ("b", 200), ("c", 503), ("b", 200)):
            answer = running.client.post("/evaluate", json=BODY, headers={"Idempotency-Key": key})
            assert answer.status_code == status, answer.text
            assert status == 200 or int(answer.headers["retry-after"]) > 1
        assert running.client.post("/evaluate", json={}).status_code == 422
        answer = running.client.post("/evaluate", json=BODY, headers={"Idempotency-Key": "a"})
        assert (answer.status_code, 1 <= int(answer.headers["retry-after"]) <= 10) == (429, True), answer.text
