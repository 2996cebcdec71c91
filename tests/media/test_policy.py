"""What documents from the hub may name; servers on loopback stand for private networks."""

from __future__ import annotations

import socket
import threading
import timeit
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import MediaError
from lmms_eval.media import load_rgb, policy, resolve
from lmms_eval.media.policy import CheckedUrl, MediaPolicy, is_public
from tests.cases import for_each
from tests.media.draw import encoded, picture

PNG = encoded(picture(), "PNG")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The data set's folder with a picture, a link within and links that lead out; a secret beside it."""
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "me.png").write_bytes(PNG)
    (folder / "images" / "a.png").write_bytes(PNG)
    (folder / "images" / "within.png").symlink_to(folder / "images" / "a.png")
    (folder / "images" / "out.png").symlink_to(tmp_path / "secret" / "me.png")
    (folder / "out").symlink_to(tmp_path / "secret")
    return folder


def test_files_of_its_own_folders(root: Path) -> None:
    rule = MediaPolicy.of("t.yaml", [root])
    for name in ("images/a.png", "images/within.png", "images/not_there.png", "images/../images/a.png"):
        assert rule.medium(f"{root}/{name}") == f"{root}/{name}"
    assert rule.medium(f"file://{root}/images/a.png") == f"file://{root}/images/a.png"
    shown = {"bytes": PNG, "path": "/etc/passwd"}  # the name that a feature gave along with the bytes
    for value in (PNG, picture(), shown, {"array": [0.0], "sampling_rate": 8000, "path": "/x.wav"}, "data:,x", ""):
        assert rule.medium(value) is value


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd", "{root}/../secret/me.png", "{root}/images/out.png", "{root}/out/me.png", "../secret/me.png",
        "file:///etc/passwd", "FILE://{root}/../secret/me.png", "secret/me.png", "{root}/images/..", "{root}x/a.png",
        "~/a.png",
    ],
)  # fmt: skip
def test_files_elsewhere_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(root.parent)
    rule = MediaPolicy.of("t.yaml", [root])
    path = name.format(root=root)
    turn = {"role": "user", "content": [{"type": "text", "text": path}, {"type": "image", "url": path}]}
    for value in (
        path,
        {"type": "video", "video": path, "video_end": 1.0},
        {"path": path},
        {"bytes": None, "path": path},
    ):
        for _ in range(2):  # a folder is remembered
            with pytest.raises(MediaError, match=r"t\.yaml: a document names .* refused.*--allow_media"):
                rule.medium(value)
    with pytest.raises(MediaError, match="--allow_media"):
        rule.turns([turn])


def test_what_is_allowed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    wide = MediaPolicy.of("t.yaml", [root], [str(root.parent / "secret")])
    for name in (f"{root}/images/out.png", f"{root}/out/me.png", "secret/me.png", f"{root.parent}/secret/me.png"):
        wide.medium(name)
    one = MediaPolicy.of("t.yaml", [root], [str(root.parent / "secret" / "me.png")])
    one.medium(f"{root.parent}/secret/me.png")
    (root.parent / "secret" / "you.png").write_bytes(PNG)
    with pytest.raises(MediaError):
        one.medium(f"{root.parent}/secret/you.png")


@for_each(
    ("address", "public"),
    [
        ("127.0.0.1", False), ("10.1.2.3", False), ("192.168.0.1", False), ("172.16.9.9", False), ("0.0.0.0", False),
        ("169.254.169.254", False), ("100.64.0.1", False), ("224.0.0.1", False), ("::1", False),
        ("fd00::1", False), ("fe80::1%eth0", False), ("::ffff:127.0.0.1", False), ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
        ("8.8.8.8", True), ("2606:4700::1111", True), ("::ffff:8.8.8.8", True), ("64:ff9b::808:808", True),
    ],
)  # fmt: skip
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public


@given(st.ip_addresses(v=4))
def test_no_form_of_an_address_says_otherwise(address: Any) -> None:
    wanted = is_public(str(address))
    assert is_public(f"::ffff:{address}") is wanted
    assert is_public(f"64:ff9b::{address}") is wanted


@for_each(
    "url",
    [
        "http://127.0.0.1/a.png", "http://localhost:8000/a.png", "HTTP://LOCALHOST/a.png", "http://[::1]/a.png",
        "http://2130706433/a.png", "http://0x7f.1/a.png", "http://127.1/a.png", "http://u:p@127.0.0.1/a.png",
        "http://[::ffff:127.0.0.1]/a.png", "http://169.254.169.254/latest/meta-data", "https://10.0.0.1/a.png",
        "http:///a.png", "http://[bad/a.png",
    ],
)  # fmt: skip
def test_addresses_in_private_networks_are_refused(url: str) -> None:
    with pytest.raises(MediaError, match=r"a document names .*--allow_media"):
        MediaPolicy.of("t.yaml", []).medium(url)


def test_public_addresses_pass_and_stay_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []

    def lookup(host: str, *_: Any, **__: Any) -> list[Any]:
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 0))]

    monkeypatch.setattr(policy.socket, "getaddrinfo", lookup)
    rule = MediaPolicy.of("t.yaml", [])
    for number in range(5):
        url = rule.medium(f"https://example.org/{number}.png")
        assert isinstance(url, CheckedUrl) and url == f"https://example.org/{number}.png"
        assert resolve(url).policy is rule
    assert looked_up == ["example.org"]


class _Pictures(BaseHTTPRequestHandler):
    """``/a.png`` is a picture; ``/to/URL`` leads there."""

    came: list[str]

    def do_GET(self) -> None:
        self.came.append(self.path)
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(PNG)))
        self.end_headers()
        self.wfile.write(PNG)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """Its address, and what was asked of it."""
    handler = type("Handler", (_Pictures,), {"came": []})
    running = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}", handler.came
    running.shutdown()
    running.server_close()


def test_the_machine_that_answers_is_checked(server: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is public when it is looked up first, and leads to loopback when it is connected to."""
    address, came = server
    rule = MediaPolicy.of("t.yaml", [])
    port = int(address.rpartition(":")[2])
    local = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    public = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", port))]
    answers = [public, public, local]
    monkeypatch.setattr(policy.socket, "getaddrinfo", lambda *_, **__: answers.pop(0) if answers else local)
    url = rule.medium(f"http://rebound.example:{port}/a.png")
    with pytest.raises(MediaError, match=r"rebound\.example is refused: it leads to 127\.0\.0\.1"):
        resolve(url).read_bytes()
    with pytest.raises(MediaError, match=r"rebound\.example is refused, which is 127\.0\.0\.1"):
        resolve(url).read_bytes()
    assert not came
    assert load_rgb(f"{address}/a.png").size == (40, 30)  # the user's own address, from data of the user's own


def test_redirects_are_checked(server: tuple[str, list[str]]) -> None:
    address, came = server
    allowed = MediaPolicy.of("t.yaml", [], [f"{address}/to", f"{address}/a.png"])
    assert load_rgb(allowed.medium(f"{address}/to/{address}/a.png")).size == (40, 30)
    for target in (f"{address}/b.png", "http://169.254.169.254/", "file:///etc/passwd", "ftp://127.0.0.1/x"):
        with pytest.raises(MediaError, match="cannot fetch"):
            load_rgb(allowed.medium(f"{address}/to/{target}"))
    assert f"{address}/b.png" not in came and "/b.png" not in came


def test_an_allowed_address_allows_what_is_below_it() -> None:
    rule = MediaPolicy.of("t.yaml", [], ["http://127.0.0.1:9/public/"])
    assert rule.medium("http://127.0.0.1:9/public/a.png?size=3")
    for url in ("http://127.0.0.1:9/publicity", "http://127.0.0.1:9/public/../x", "http://127.0.0.1:9/public/%2e%2e/x"):
        with pytest.raises(MediaError):
            rule.medium(url)


def test_a_check_costs_little(root: Path) -> None:
    """Beside opening a picture (some 300 microseconds at least) the check does not show."""
    rule = MediaPolicy.of("t.yaml", [root])
    path = f"{root}/images/a.png"
    checking = min(timeit.repeat(lambda: rule.medium(path), number=500, repeat=5))
    reading = min(timeit.repeat(lambda: load_rgb(Path(path).read_bytes()), number=500, repeat=5))
    assert checking < 0.5 * reading
