"""Python programs as forks of a process that has imported what most runs need: most of their time was the import.

A fork is a process of its own, with its own end, files, limits and modules of the user's code. What a new interpreter
reads at its start (encoding, hash seed, flags) is that of the tests.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import random
import resource
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
IMPORTED = ("numpy", "pyarrow", "pydantic", "lmms_eval.cli.main", "lmms_eval.evaluator", "lmms_eval.evaluation.run")
_LONGEST = 1 << 20
_lock = threading.Lock()
_forking: tuple[int, socket.socket] | None = None
"""The process that started it, and the socket to it."""


def run(
    *words: str,
    env: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
    timeout: float = 120,
    file_size: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run what ``python WORDS`` runs, as ``subprocess.run`` does.

    The words are ``-m MODULE ARGUMENT...``, ``-c CODE ARGUMENT...`` or ``FILE ARGUMENT...``.
    """
    out, err = os.pipe(), os.pipe()
    asked = {"words": words, "env": {**env}, "cwd": str(cwd or Path.cwd()), "file_size": file_size}
    with open(out[0], "rb") as outs, open(err[0], "rb") as errs, ThreadPoolExecutor(2) as readers, _lock:
        told = _started()
        socket.send_fds(told, [json.dumps(asked).encode()], [out[1], err[1]])
        os.close(out[1])
        os.close(err[1])
        pid = int(told.recv(64))
        texts = [readers.submit(file.read) for file in (outs, errs)]
        told.settimeout(timeout)
        try:
            code = int(told.recv(64))
        except TimeoutError as error:
            os.kill(pid, signal.SIGKILL)
            told.settimeout(None)
            told.recv(64)
            raise subprocess.TimeoutExpired(list(words), timeout) from error
        finally:
            told.settimeout(None)
        return subprocess.CompletedProcess([*words], code, *(text.result().decode() for text in texts))


def _started() -> socket.socket:
    """The socket to the process that forks, which is started by the first run."""
    global _forking
    if _forking is None or _forking[0] != os.getpid():
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.forks", str(theirs.fileno())], cwd=ROOT, pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        _forking = os.getpid(), ours
        atexit.register(_end, os.getpid(), ours, process)
    return _forking[1]


def _end(owner: int, ours: socket.socket, process: subprocess.Popen[bytes]) -> None:
    if owner == os.getpid():
        ours.close()
        process.wait()


def fork(asker: socket.socket) -> dict[str, Any] | None:
    """Fork for each program that is asked for; returns it in the fork, and ``None`` when nobody asks any more."""
    while True:
        data, files, *_ = socket.recv_fds(asker, _LONGEST, 2)
        if not data:
            return None
        if not (pid := os.fork()):
            asker.close()
            for number, file in enumerate(files, 1):
                os.dup2(file, number)
                os.close(file)
            asked: dict[str, Any] = json.loads(data)
            return asked
        for file in files:
            os.close(file)
        asker.send(str(pid).encode())
        asker.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def become(asked: Mapping[str, Any]) -> None:
    """Run the program as the main one of this process."""
    kind, *words = asked["words"]
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    first = asked["cwd"] if kind in ("-m", "-c") else str(Path(kind).parent)
    sys.path[:] = [first, *dict.fromkeys([*filter(None, paths), *sys.path[1:]])]
    importlib.invalidate_caches()
    random.seed()
    if asked["file_size"] is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["file_size"], asked["file_size"]))
    match kind:
        case "-m":
            sys.argv[:] = words
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        case "-c":
            sys.argv[:] = [kind, *words[1:]]
            exec(compile(words[0], "<string>", "exec"), {"__name__": "__main__"})
        case _:
            sys.argv[:] = [kind, *words]
            runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    if (program := fork(socket.socket(fileno=int(sys.argv[1])))) is not None:
        become(program)
