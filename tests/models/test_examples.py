"""The scripts of ``examples/models``, each run with a tiny model, a stand-in engine, or a server on loopback."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.workload import text_task
from lmms_eval.cli.main import main
from tests.cases import for_each
from tests.models.offline.engines import Recorder, stand_ins, write_tokenizer
from tests.servers.stub import StubServer

SCRIPTS = Path(__file__).parents[2] / "examples" / "models"
TASK = "bench_text"
LOCAL = {
    "internvl_hf.sh": "internvl_hf",
    "llava_onevision.sh": "llava_onevision",
    "qwen25vl.sh": "qwen2_5_vl",
    "qwen3vl.sh": "qwen3_vl",
    "tensor_parallel.sh": "qwen2_5_vl",
}
ENGINES: dict[str, dict[str, Any]] = {
    "sglang.sh": {"tp_size": 2, "dp_size": 3, "context_length": 32768},
    "sglang_qwen35.sh": {"tp_size": 2, "dp_size": 3, "context_length": 131072, "reasoning_parser": "qwen3"},
    "vllm_qwen2vl.sh": {"tensor_parallel_size": 2, "data_parallel_size": 3, "max_model_len": 32768},
    "vllm_qwen35.sh": {"max_model_len": 131072, "reasoning_parser": "qwen3"},
    "vllm_qwen3vl.sh": {"max_model_len": 65536, "limit_mm_per_prompt": {"image": 16, "video": 1}},
}
SERVICES = {
    "claude.sh": ("ANTHROPIC_API_KEY", "anthropic", ""),
    "gemini.sh": ("GOOGLE_API_KEY", "google.genai", ""),
    "openai_compatible.sh": ("OPENAI_API_KEY", "aiohttp", "/v1"),
    "openrouter_api.sh": ("OPENROUTER_API_KEY", "aiohttp", "/v1"),
}


@pytest.fixture
def arguments(tmp_path: Path) -> Callable[..., list[str]]:
    """What a script hands to the command line, with a small task and the variables of ``environment``."""
    text_task(tmp_path / "tasks", 2)
    told = tmp_path / "told"
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/usr/bin/env bash\nprintf '%s\\0' \"$@\" > '{told}'\n")
    python.chmod(0o755)

    def read(script: str, **environment: str) -> list[str]:
        more = {"TASKS": TASK, "PATH": f"{python.parent}:{os.environ['PATH']}", **environment}
        options = ("--include_path", str(tmp_path / "tasks"), "--output_path", str(tmp_path / "out"), "--allow_blank")
        subprocess.run([SCRIPTS / script, *options], env={**os.environ, **more}, check=True)
        first, second, *given = told.read_text("utf-8").split("\0")[:-1]
        assert (first, second) == ("-m", "lmms_eval")
        return given

    return read


def results(tmp_path: Path) -> dict[str, Any]:
    (path,) = (tmp_path / "out").rglob("*_results.json")
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def test_every_script_is_run_here() -> None:
    assert {path.name for path in SCRIPTS.iterdir()} == {*LOCAL, *ENGINES, *SERVICES}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    pytest.importorskip("transformers", reason="transformers is not installed")
    from tests.models.families import build

    made: dict[str, str] = {}

    def find(name: str) -> str:
        if name not in made:
            made[name] = str(getattr(build, name)(tmp_path_factory.mktemp(name) / "m"))
        return made[name]

    return find


@pytest.mark.parametrize("script", LOCAL)
def test_a_local_model(
    script: str, tiny: Callable[[str], str], arguments: Callable[..., list[str]], tmp_path: Path
) -> None:
    given = arguments(script, MODEL=tiny(LOCAL[script]), DEVICE_MAP="cpu")
    assert main([*given, "--gen_kwargs", "max_new_tokens=2"]) == 0
    assert results(tmp_path)["outcomes"][TASK]["scored"] == 2


@pytest.mark.parametrize("script", ENGINES)
def test_an_engine_gets_what_the_script_says(
    script: str, arguments: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    seen = Recorder()
    stand_ins(monkeypatch, seen)
    assert main(arguments(script, MODEL=write_tokenizer(tmp_path / "model"), TP="2", DP="3")) == 0
    assert results(tmp_path)["outcomes"][TASK]["scored"] == 2
    assert {name: seen.started[name] for name in ENGINES[script]} == ENGINES[script]


@pytest.mark.parametrize("script", SERVICES)
def test_a_service(
    script: str, arguments: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable, package, path = SERVICES[script]
    pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.setenv(variable, "a-key-for-tests")
    with StubServer() as server:
        address = f"http://127.0.0.1:{server.port}{path}"
        assert main(arguments(script, BASE_URL=address, MODEL="some-model")) == 0
        assert len(server.bodies()) == 2
    assert results(tmp_path)["outcomes"][TASK]["scored"] == 2


@for_each("script", [name for name in SERVICES if name != "openai_compatible.sh"])
def test_a_script_without_its_key_says_which_one(script: str, tmp_path: Path) -> None:
    variable = SERVICES[script][0]
    environment = {name: value for name, value in os.environ.items() if name != variable}
    done = subprocess.run([SCRIPTS / script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"{variable}: set the key in the environment" in done.stderr
