"""The build of torch that ``make`` installs: chosen by the machine, from an index on loopback, through the Makefile."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from release.torch_build import INDEX, choose, has_gpu, main, pinned_torch, problem_of
from tests.cases import for_each

ROOT = Path(__file__).parents[1]
PIN = pinned_torch()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An index on loopback that has a CPU build of torch, which holds nothing."""
    pages = tmp_path_factory.mktemp("index")
    wheel = f"torch-{PIN.partition('==')[2]}+cpu-py3-none-any.whl"
    (pages / "torch").mkdir()
    (pages / "torch" / "index.html").write_text(f'<!DOCTYPE html><a href="{wheel}">{wheel}</a>')
    info = f"torch-{PIN.partition('==')[2]}+cpu.dist-info"
    with zipfile.ZipFile(pages / "torch" / wheel, "w") as file:
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {info[6:-10]}\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(pages)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@for_each(
    ("files", "program", "found"),
    [
        ([], None, False),
        (["null", "nvidia-caps"], None, False),
        (["nvidia0"], None, True),
        (["kfd"], None, True),
        ([], "echo 'GPU 0: some model'", True),
        ([], "echo 'No devices were found'; exit 6", False),
        ([], "echo no driver >&2; exit 9", False),
    ],
)
def test_a_gpu_is_found_by_its_driver_or_by_its_program(
    files: list[str], program: str | None, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices, programs = tmp_path / "dev", tmp_path / "bin"
    devices.mkdir()
    programs.mkdir()
    for name in files:
        (devices / name).touch()
    if program is not None:
        (programs / "nvidia-smi").write_text(f"#!/bin/sh\n{program}\n")
        (programs / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    assert has_gpu(devices) is found


def test_an_index_that_does_not_answer_is_given_up_in_time() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Quiet) as silent:  # it accepts, and never answers
        begin = time.monotonic()
        problem = problem_of(f"http://127.0.0.1:{silent.server_address[1]}", 0.3)
        assert problem and time.monotonic() - begin < 2
        nobody = silent.server_address[1]
    assert "refused" in problem_of(f"http://127.0.0.1:{nobody}")
    assert "unknown url type" in problem_of("no-address")


def test_the_build_follows_the_machine_and_the_wish(index: str) -> None:
    cpu = ["--no-deps", "--index-url", index, PIN]
    assert choose("auto", index, False) == (cpu, f"torch: the CPU build from {index}, no GPU found")
    assert choose("cpu", index, True) == (cpu, f"torch: the CPU build from {index}, TORCH=cpu")
    assert choose("auto", index, True) == ([], "torch: the build of the package index, this machine has a GPU")
    assert choose("default", index, False)[0] == []
    words, line = choose("auto", "http://127.0.0.1:9", False)
    assert words == [] and "docs/install.md" in line and "http://127.0.0.1:9" in line


def test_pip_gets_the_cpu_build_and_nothing_else_from_that_index(index: str) -> None:
    words = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    done = subprocess.run(
        [*words, *choose("cpu", index, False)[0]], capture_output=True, text=True, check=False,
        env={**plain, "PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "127.0.0.1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [torch] = json.loads(done.stdout)["install"]
    assert torch["metadata"]["version"] == f"{PIN.partition('==')[2]}+cpu"
    assert torch["download_info"]["url"].startswith(index)


def test_nothing_is_chosen_if_torch_is_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("release.torch_build.find_spec", lambda _name: object())
    assert main([]) == 0
    assert capsys.readouterr() == ("", "")


def _make(folder: Path, *words: str, fails: str = "nothing") -> tuple[list[str], str]:
    """Let ``make`` set up an environment whose pip only notes its words. Return these, and the output."""
    python, log = folder / "venv" / "bin" / "python", folder / "pip.log"
    python.parent.mkdir(parents=True)
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *release.torch_build*) exec {sys.executable} -S "$@";; esac\n'  # -S: without torch
        f'echo "$*" >> {log}\ncase "$*" in *{fails}*) exit 1;; esac\necho "Successfully installed it"\n'
    )
    python.chmod(0o755)
    plain = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "VENV")}
    target = folder / "venv" / ".ready-metrics,plots"
    done = subprocess.run(
        ["make", "-s", f"VENV={folder / 'venv'}", *words, str(target)], cwd=ROOT, capture_output=True, text=True,
        check=False, env={**plain, "NO_PROXY": "127.0.0.1"},
    )  # fmt: skip
    assert done.returncode == 0 and target.is_file(), done.stdout + done.stderr
    return log.read_text().splitlines(), done.stdout + done.stderr


def test_make_installs_the_cpu_build_before_the_package(index: str, tmp_path: Path) -> None:
    (torch, package), printed = _make(tmp_path, "TORCH=cpu", f"TORCH_INDEX={index}/")
    assert torch.endswith(f"-q --no-deps --index-url {index} {PIN}")
    assert package.endswith("-c constraints.txt -e .[metrics,plots]")
    assert f"torch: the CPU build from {index}" in printed


def test_make_continues_with_the_package_index(index: str, tmp_path: Path) -> None:
    [package], printed = _make(tmp_path / "unreachable", "TORCH=cpu", "TORCH_INDEX=http://127.0.0.1:9")
    assert package.endswith(".[metrics,plots]")
    assert "cannot be read" in printed and "docs/install.md" in printed
    [package], printed = _make(tmp_path / "wish", "TORCH=default", f"TORCH_INDEX={index}")
    assert package.endswith(".[metrics,plots]") and "TORCH=default" in printed
    (_, package), printed = _make(tmp_path / "no_wheel", "TORCH=cpu", f"TORCH_INDEX={index}", fails="--index-url")
    assert package.endswith(".[metrics,plots]") and "no CPU build for this Python" in printed


def test_the_address_is_the_same_everywhere() -> None:
    assert f"TORCH_INDEX ?= {INDEX}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in ("docs/install.md", "docs/start.md", "README.md"):
        assert f"--extra-index-url {INDEX}" in (ROOT / page).read_text(encoding="utf-8")
