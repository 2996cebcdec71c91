"""A stand-in for the package vllm: a server of its command line and key whose ways are told by the model's name."""

from __future__ import annotations

import textwrap
from pathlib import Path

SERVER = """
import argparse, http.server, json, os, socket, subprocess, sys, time

parser = argparse.ArgumentParser()
for name in ("--model", "--host", "--tensor-parallel-size", "--max-model-len"):
    parser.add_argument(name)
parser.add_argument("--port", type=int)
parser.add_argument("--enforce-eager", action="store_true")
given = parser.parse_args()
key = os.environ["VLLM_API_KEY"]
print("arguments", sys.argv[1:], "key", key, "gpus", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])  # an engine's own process
print("pids", os.getpid(), worker.pid, flush=True)
if given.model == "crashes":
    sys.exit("CUDA out of memory: you need more")
if given.model == "hangs":
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
ready = time.monotonic() + 0.5


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # no 40 ms between head and body

    def log_message(self, *_):
        pass

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.reply(200 if time.monotonic() > ready else 503, {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != f"Bearer {key}":
            return self.reply(401, {"error": {"message": "wrong key"}})
        content = body["messages"][-1]["content"]
        text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        if given.model == "slow":
            time.sleep(1)
        message = {"role": "assistant", "content": text.partition("ANSWER=")[2]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self.reply(200, {"model": given.model, "choices": [choice]})


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    address_family = socket.AF_INET6 if ":" in given.host else socket.AF_INET


Server((given.host, given.port), Handler).serve_forever(0.01)
"""


def install(folder: Path) -> Path:
    """Write the package; returns the folder for the path of Python."""
    place = folder / "stand_in" / "vllm" / "entrypoints" / "openai"
    place.mkdir(parents=True)
    for package in (place, *place.parents[:2]):
        (package / "__init__.py").write_text("")
    (place / "api_server.py").write_text(textwrap.dedent(SERVER))
    return folder / "stand_in"
