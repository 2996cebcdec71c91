from __future__ import annotations

import functools
import hashlib
import subprocess
import sys
import threading
import urllib.request
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from lmms_eval.tasks._task_utils.linguistic import open_linguistics
from tests.tasks._task_utils.test_linguistic import write_data, zip_data


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """NLTK's server on loopback: an index and two archives, one of which it says to leave packed."""
    site = tmp_path / "site"
    zip_data(write_data(site))

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    url = f"http://127.0.0.1:{server.server_address[1]}"
    packages = []
    for name, place, unpacked in (("punkt_tab", "tokenizers", 1), ("wordnet", "corpora", 0)):
        path = site / place / f"{name}.zip"
        content = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            whole = sum(member.file_size for member in archive.infolist())
        packages.append(
            f'<package id="{name}" name="{name}" subdir="{place}" url="{url}/{place}/{name}.zip" '
            f'size="{len(content)}" unzipped_size="{whole}" unzip="{unpacked}" '
            f'sha256_checksum="{hashlib.sha256(content).hexdigest()}"/>'
        )
    (site / "index.xml").write_text(
        f'<?xml version="1.0"?><nltk_data><packages>{"".join(packages)}</packages><collections/></nltk_data>'
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    import nltk.downloader

    monkeypatch.setattr(nltk.downloader, "urlopen", urllib.request.urlopen)  # NLTK refuses loopback addresses
    monkeypatch.setattr(nltk.downloader.Downloader, "DEFAULT_URL", f"{url}/index.xml")
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    yield site
    server.shutdown()
    server.server_close()
    thread.join()


def test_both_packages_are_installed_and_read(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data"
    assert main(["fetch", "nltk", "--to", str(folder)]) == 0
    out = capsys.readouterr().out
    assert f"NLTK's data: {folder}" in out and f"give --nltk_data {folder}" in out
    assert open_linguistics(str(folder)).lemmatizer.lemma("wolves") == "wolf"


def test_the_default_folder_is_found_by_itself(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", "nltk"]) == 0
    assert capsys.readouterr().out.strip() == f"NLTK's data: {Path.home() / 'nltk_data'}"
    assert open_linguistics().lemmatizer.lemma("dogs") == "dog"


def test_the_first_folder_of_the_environment_is_taken(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NLTK_DATA", f"{tmp_path}/first:{tmp_path}/second")
    assert main(["fetch", "nltk"]) == 0
    assert (tmp_path / "first/corpora").is_dir() and not (tmp_path / "second").exists()


@pytest.mark.parametrize("damage", ["no server", "no package", "no archive", "other content", "a file in the way"])
def test_failures_end_with_1_and_say_what_to_do(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    import nltk.downloader

    folder = tmp_path / "data"
    if damage == "no server":
        monkeypatch.setattr(nltk.downloader.Downloader, "DEFAULT_URL", "http://127.0.0.1:9/index.xml")
    elif damage == "no package":
        (index / "index.xml").write_text("<nltk_data><packages/><collections/></nltk_data>")
    elif damage == "no archive":
        (index / "tokenizers/punkt_tab.zip").unlink()
    elif damage == "other content":
        (index / "tokenizers/punkt_tab.zip").write_bytes(b"PK nonsense")
    else:
        folder.write_text("")
    assert main(["fetch", "nltk", "--to", str(folder)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("error: fetch nltk: ") and "--nltk_data" in captured.err
    assert "Traceback" not in captured.err and captured.out == ""


def test_without_nltk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "nltk.downloader", None)
    assert main(["fetch", "nltk", "--to", "anywhere"]) == 2
    assert "pip install 'lmms_eval[metrics]'" in capsys.readouterr().err
    assert not Path("anywhere").exists()


def test_wrong_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch"]) == 2
    assert main(["fetch", "everything"]) == 2
    assert "lmms-eval fetch" in capsys.readouterr().err


def test_help_imports_no_nltk() -> None:
    program = (
        "import sys\nfrom lmms_eval.cli.main import main\n"
        "assert main(['fetch', '--help']) == main(['--help']) == 0\nassert 'nltk' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
