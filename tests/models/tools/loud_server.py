"""A tool server without any package, which writes to standard output what is no message; run as a script.

The name of its tool says what: ``text``, ``json``, ``bytes``, ``blank``, ``answer``, ``notice``, ``broken``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

LINES = 500
NOISE = {
    "text": b"loading weights\n",
    "json": b'{"a": [1]}\n',
    "bytes": b"\xff\xfe\x00\n",
    "blank": b"\n",
    "answer": b'{"jsonrpc": "2.0", "id": 987654, "result": {}}\n',
    "notice": b'{"jsonrpc": "2.0", "method": "notifications/nobody", "params": {}}\n',
    "broken": b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": 7}}\n',
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        served = {"name": "loud", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": served}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object", "properties": {}}} for name in NOISE]}
    if method == "tools/call":
        for _ in range(LINES):
            os.write(1, NOISE[params["name"]])
        return {"content": [{"type": "text", "text": "done"}]}
    return {}


if __name__ == "__main__":
    with open(f"{__file__}.started", "a") as started:
        started.write(f"{os.getpid()}\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params") or {})
            os.write(1, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
