"""``lmms-eval view`` as a process: its address, what it answers to whom, and its end."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from lmms_eval.cli.main import main
from lmms_eval.viewer.live.app import can_open_browser, ssh_hint
from tests.cases import for_each
from tests.results.records import Record
from tests.viewer.live.conftest import View, view_of


@pytest.fixture(scope="module")
def view(quiz_runs: tuple[Path, Path]) -> Iterator[View]:
    with view_of(quiz_runs[0].parent, "--no_browser") as found:
        yield found


@pytest.fixture
def client(view: View) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=view.root, trust_env=False) as found:
        assert found.get(view.address).status_code == 200
        yield found


def get(client: httpx.Client, name: str) -> Any:
    answer = client.get(f"data/{name}.json")
    assert answer.status_code == 200
    return answer.json()


def test_finished_runs_are_those_of_the_report(client: httpx.Client) -> None:
    runs = get(client, "runs")["runs"]
    assert [(run["state"], run["tasks"][0]["samples"]) for run in runs] == [("complete", 69)] * 2
    assert {run["rows"][0]["value"] for run in runs} == {1.0, 20 / 69}
    assert "live" not in runs[0]
    index = get(client, "index-0-0")
    assert index["count"] == 69
    thumbs = next(column["all"] for column in index["columns"] if column["key"] == "thumb")
    assert len(get(client, "text-0-0-0")) == 69
    picture = client.get(thumbs[0])
    assert (picture.headers["content-type"], picture.content[8:12]) == ("image/webp", b"WEBP")
    sample = get(client, "media-0-0-0")
    assert client.get(sample["media"][0]["src"]).content[8:12] == b"WEBP"
    assert get(client, "run-1")["tasks"]["quiz"]["breakdowns"]
    assert get(client, "audit-0")[0]["answers"] == 69


@pytest.mark.parametrize(
    "path", ["", "app.js", "app.css", "changes", "data/runs.json", "data/run-0.json", "favicon.ico"]
)
def test_nothing_is_answered_without_the_token(view: View, path: str) -> None:
    for headers in ({}, {"cookie": f"lmms_view_{view.port}=guess"}):
        answer = httpx.get(view.root + path, headers=headers, trust_env=False)
        assert answer.status_code == 403
        assert "lmms-eval view has printed" in answer.text
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["", "data/runs.json", "changes"])
def test_nothing_can_be_written(client: httpx.Client, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_others_are_refused(client: httpx.Client, headers: dict[str, str]) -> None:
    assert client.get("data/runs.json", headers=headers).status_code == 403
    assert client.get("data/runs.json").status_code == 200


def test_browsers_are_told_to_be_strict(client: httpx.Client, view: View) -> None:
    page = client.get(view.address)
    policy = page.headers["content-security-policy"]
    nonce = re.search(r"script-src 'nonce-([\w-]{24})'", policy)
    assert nonce
    assert page.text.count(f'nonce="{nonce[1]}"') == 2
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert nonce[1] not in client.get("").text
    assert view.address.split("?")[1] not in page.text
    cookie = page.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    for path in ("", "app.js", "data/runs.json", "data/none.json", "changes?since=0"):
        headers = client.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    [
        *("data/..%2f..%2fetc%2fpasswd.json", "data/none.json", "data/index-9-0.json", "data/index-0-9.json"),
        *("media/..%2f..%2fsecret.webp", "media/000000000000000000000000.webp", "media/passwd", "../pyproject.toml"),
        *(
            "data/text-0-0-999.json",
            "data/run-0-0.json",
            "data/column-0-0-99-0.json",
            f"data/run-{'9' * 400}.json",
            "app.js/../../x",
            "index.html",
        ),
    ],
)
def test_only_names_of_its_own_are_served(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("since", ["", "-1", "x", "9" * 50, "999999"])
def test_a_page_that_knows_nothing_loads_all(client: httpx.Client, since: str) -> None:
    assert client.get("changes", params={"view": "other", "since": since}).json()["names"] == ["*"]


def test_a_port_in_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["view", str(tmp_path), "--port", str(port), "--no_browser"]) == 2
    told = capsys.readouterr().err.strip()
    assert told == f"error: --port {port}: it is in use; give another one, or none for any that is free"


@for_each("words", [["--port", "70000"], ["--port", "-1"], ["--limit", "3"]])
def test_wrong_words_are_refused(tmp_path: Path, words: list[str]) -> None:
    assert main(["view", str(tmp_path), *words]) == 2


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(tmp_path / "none"), "--no_browser"]) == 2
    assert "no such folder" in capsys.readouterr().err


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_at_once_while_a_page_waits(tmp_path: Path, by: int) -> None:
    with view_of(tmp_path, "--no_browser") as view, httpx.Client(base_url=view.root, trust_env=False) as client:
        client.get(view.address)
        told = client.get("changes").json()
        assert get(client, "runs")["runs"] == []
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.get, "changes", params={"view": told["view"], "since": told["version"]})
            with pytest.raises(TimeoutError):
                waiting.result(timeout=1)
            view.process.send_signal(by)
            assert waiting.result(timeout=5).json() == {**told, "names": [], "ending": True}
        out, err = view.process.communicate(timeout=30)
        assert (view.process.returncode, out, err) == (0, "the view has ended\n", "")
        assert f"ssh -N -L {view.port}:127.0.0.1:{view.port} " in view.hint  # no display here


def test_runs_appear_and_end_under_one_name(tmp_path: Path) -> None:
    with view_of(tmp_path, "--no_browser") as view, httpx.Client(base_url=view.root, trust_env=False) as client:
        client.get(view.address)
        told = client.get("changes").json()
        for model in ("one", "other"):
            record = Record(tmp_path / model, 20)
            record.score(3, 1.0)
        while len(runs := get(client, "runs")["runs"]) < 2:
            changes = client.get("changes", params={"view": told["view"], "since": told["version"]}, timeout=20).json()
            assert changes["names"]
            told = changes
        assert [run["name"] for run in runs] == ["modest", "modest@other"]
        assert [run["state"] for run in runs] == ["running"] * 2
        assert [run["live"]["done"] for run in runs] == [1, 1]


def test_two_runs_of_a_model_in_one_folder_have_their_dates(tmp_path: Path) -> None:
    from lmms_eval.cli.main import main

    words = ["--model", "baseline", "--model_args", "strategy=gold", "--tasks", "milebench_demo", "--no_media"]
    for limit in ("1", "2"):
        assert main([*words, "--limit", limit, "--output_path", str(tmp_path / "baseline"), "--log_samples"]) == 0
    with view_of(tmp_path, "--no_browser") as view, httpx.Client(base_url=view.root, trust_env=False) as client:
        client.get(view.address)
        first, second = [run["name"] for run in get(client, "runs")["runs"]]
    assert second.removeprefix(f"{first}@")[:8].isdigit()


def test_a_browser_is_opened_where_it_can_be_seen() -> None:
    assert can_open_browser({"DISPLAY": ":0"})
    assert can_open_browser({"WAYLAND_DISPLAY": "wayland-0"})
    assert not can_open_browser({"DISPLAY": ":10", "SSH_CONNECTION": "10.0.0.2 5000 10.0.0.1 22"})
    assert ssh_hint({"SSH_CONNECTION": "10.0.0.2 5000 10.0.0.1 22"}, 80, "here") == "ssh -N -L 80:127.0.0.1:80 10.0.0.1"
    assert ssh_hint({}, 80, "here") == "ssh -N -L 80:127.0.0.1:80 here"
