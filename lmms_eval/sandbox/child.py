"""The sandbox child: reads programs as JSON lines and runs each in a confined fork, which can reach nothing outside.

It replies with how the program ended. ``launcher.py`` starts it with a bare interpreter and a clean environment. This
is the only file of the package that executes text as a program.
"""

from __future__ import annotations

import atexit
import base64
import builtins
import collections
import contextlib
import functools
import gc
import heapq
import io
import itertools
import json
import math
import multiprocessing
import os
import pathlib
import re
import select
import signal
import string
import sys
import time
import traceback
import types
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from lmms_eval.sandbox.confine import Setup
    from lmms_eval.sandbox.threads import Bound

SEEN = (io, pathlib, multiprocessing)
"""Modules that a program with two namespaces can use without importing them."""
WARM = (collections, functools, heapq, itertools, math, re, string)
"""Loaded once here, so that programs need not load them again."""
DELIVERY = 3
"""File descriptor that receives captured output."""
DELIVERED = b"\x06"
"""First byte of captured output; a program that exits by itself delivers nothing."""
STDERR_BYTES = 2000
OUT_OF_MEMORY = 86
"""Exit status after an uncaught ``MemoryError``."""
_PROGRAM_NAME = "<program>"
_CHUNK = 1 << 16


def main() -> None:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, root)
    from lmms_eval.sandbox import confine, probing, seccomp, threads

    sys.path.remove(root)
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nothing, standard)
    first = json.loads(requests.readline())
    setup = confine.Setup.from_dict(first["setup"])
    sys.path += sorted({os.path.dirname(package) for package in setup.packages})
    if "probe" in first:
        probe = probing.probe_enclosed if setup.enclosed else probing.probe
        _reply(replies, probe(setup, first["probe"]))
        os._exit(0)  # an orderly end of the interpreter would take 10 ms
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    user = confine.enclose(setup)
    if setup.namespaces:
        # Continue in a child, process 1 of the new namespace: when it ends, the kernel ends all others there.
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
        from lmms_eval.sandbox.linux import PR_SET_PDEATHSIG, prctl

        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    bound = threads.find_bound(user, setup.readable) if setup.threads else None
    rules = confine.make_rules(setup)
    if setup.seccomp:
        seccomp.build(0, setup.threads)  # leaves a program's process to fill in its own number
    gc.freeze()  # a program's collections would copy the pages of all objects that exist now
    _reply(replies, {"ready": True})
    job = _serve(requests, replies, setup, bound, rules)
    if job is not None:
        _run(job)
    with contextlib.suppress(OSError):  # removed already, or no longer visible
        os.rmdir(setup.empty)


def _serve(
    requests: IO[bytes], replies: IO[bytes], setup: Setup, bound: Bound | None, rules: int | None
) -> Mapping[str, Any] | None:
    """Serve requests until they end. In the fork that runs a program, return that program."""
    from lmms_eval.sandbox import threads

    while line := requests.readline():
        job = json.loads(line)
        out_reading, out_writing = os.pipe()
        err_reading, err_writing = os.pipe()
        try:
            child = os.fork()
        except BlockingIOError:  # the user has started more threads since the count
            bound = bound and threads.find_bound(bound.user, setup.readable)
            child = os.fork()
        if child == 0:
            _take_over(job, setup, bound, rules, (out_writing, err_writing))
            return job  # type: ignore[no-any-return]
        os.close(out_writing)
        os.close(err_writing)
        watch = _Watch(child, job)
        try:
            watch.read(out_reading, err_reading, requests.fileno())
        finally:
            os.close(out_reading)
            os.close(err_reading)
        _reply(replies, watch.finish())
    return None


def _take_over(
    job: Mapping[str, Any], setup: Setup, bound: Bound | None, rules: int | None, pipes: tuple[int, int]
) -> None:
    """Become the program's process: its own session, only its own files, every limit. Nothing can be undone."""
    from lmms_eval.sandbox import confine

    out, err = pipes
    os.setsid()
    if job["style"] == "script":
        if hasattr(os, "memfd_create"):
            file = os.memfd_create("stdin")
        else:
            import tempfile

            with tempfile.TemporaryFile() as temporary:
                file = os.dup(temporary.fileno())
        view = memoryview(job["stdin"].encode("utf-8", "surrogatepass"))
        while view:
            view = view[os.write(file, view) :]
        os.lseek(file, 0, os.SEEK_SET)
        os.dup2(file, 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        kept = 2
    else:
        os.dup2(err, 2)
        os.dup2(out, DELIVERY)
        kept = DELIVERY
    confine.restrict(setup, job["limits"], bound, rules)
    os.closerange(kept + 1, 1 << 16)


def _reply(replies: IO[bytes], message: Mapping[str, Any]) -> None:
    replies.write(json.dumps(message).encode() + b"\n")
    replies.flush()


class _Watch:
    """The parent's side of one program."""

    def __init__(self, child: int, job: Mapping[str, Any]) -> None:
        self._child, self._job = child, job
        self._limits = job["limits"]
        self._begin = time.monotonic()
        self._out, self._err = bytearray(), bytearray()
        self._reason = ""

    def read(self, out: int, err: int, requests: int) -> None:
        """Read until both pipes are closed, a limit is exceeded, time is up, or the parent has stopped waiting."""
        deadline = self._begin + self._limits["wall_s"]
        poll = select.poll()
        for pipe in (out, err):
            poll.register(pipe, select.POLLIN)
        poll.register(requests, 0)  # reports only that the other end is closed
        pipes = 2
        while pipes and not self._reason:
            left = deadline - time.monotonic()
            ready = poll.poll(left * 1000) if left > 0 else []
            if not ready:
                self._reason = "wall" if time.monotonic() >= deadline else ""
            for pipe, _ in ready:
                if pipe == requests:
                    self._reason = "killed"
                    return
                chunk = os.read(pipe, _CHUNK)
                if not chunk:
                    poll.unregister(pipe)
                    pipes -= 1
                if pipe == err:
                    self._err = (self._err + chunk)[-STDERR_BYTES:]
                    continue
                self._out += chunk
                begun = len(DELIVERED) if self._job["style"] == "captured" else 0
                if len(self._out) > self._limits["output_bytes"] + begun:
                    self._reason = "output"

    def finish(self) -> dict[str, Any]:
        """End what is left of the program, and report how it ended."""
        deadline = self._begin + self._limits["wall_s"]
        pid, pause_s = 0, 0.00005
        while not self._reason:
            pid, status, usage = os.wait4(self._child, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                self._reason = "wall"
            time.sleep(pause_s)  # it closed its output itself, or is about to end
            pause_s = min(2 * pause_s, 0.001)
        if not pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
            _, status, usage = os.wait4(self._child, 0)
        end_strays()
        code = os.waitstatus_to_exitcode(status)
        used = usage.ru_utime + usage.ru_stime
        output, reason = bytes(self._out), self._reason or self._why(code, used)
        if self._job["style"] == "captured":
            if reason == "ok" and not output.startswith(DELIVERED):
                reason = "nonzero"
            output = output.removeprefix(DELIVERED)
        return {
            "reason": reason,
            "status": code,
            "stdout": base64.b64encode(output[: self._limits["output_bytes"]]).decode(),
            "stderr": base64.b64encode(self._err).decode(),
            "cpu_s": used,
            "wall_s": time.monotonic() - self._begin,
        }

    def _why(self, code: int, used: float) -> str:
        # The kernel enforces the limit by ticks of its clock, which are coarser than the times that it reports.
        if code == -signal.SIGXCPU or (code == -signal.SIGKILL and used > self._limits["cpu_s"] / 2):
            return "cpu"
        if code < 0:
            return "killed"
        return {0: "ok", OUT_OF_MEMORY: "memory"}.get(code, "nonzero")


def end_strays() -> None:
    """Kill and reap every process that the program left behind: orphans become children of this process."""
    while True:
        if os.getpid() == 1:  # in its own process namespace: all others there are the program's
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            own = os.getpid()
            found = []
            with contextlib.suppress(OSError):  # /proc is not mounted
                for name in filter(str.isdecimal, os.listdir("/proc")):
                    with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                        if int(file.read().rpartition(b")")[2].split()[1]) == own:
                            found.append(int(name))
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)


def _run(job: Mapping[str, Any]) -> NoReturn:
    """Run the program in its own process, which is already restricted."""
    import _sitebuiltins

    for name in ("exit", "quit"):
        setattr(builtins, name, _sitebuiltins.Quitter(name, "Ctrl-D (i.e. EOF)"))
    atexit._clear()
    status = 1
    try:
        run = _run_script if job["style"] == "script" else _run_captured
        run(job)
        status = 0
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            status = (ended.code or 0) & 0xFF
        else:
            print(ended.code, file=sys.stderr)  # noqa: T201 - as an interpreter does
    except MemoryError:
        status = OUT_OF_MEMORY
    except BaseException as error:  # noqa: BLE001 - as an interpreter does with an uncaught exception
        frames = error.__traceback__  # without those of this module
        while frames is not None and frames.tb_frame.f_code.co_filename != _PROGRAM_NAME:
            frames = frames.tb_next
        traceback.print_exception(type(error), error, frames)
    finally:
        os._exit(_ended(status))


def _ended(status: int) -> int:
    """Do what an interpreter does at exit: wait for threads, run registered functions, flush buffers."""
    try:
        sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.__stdout__):
            if stream is not None and not stream.closed:
                stream.flush()
    except BaseException:  # noqa: BLE001 - code of the program runs here too
        return status or 1
    return status


def _run_script(job: Mapping[str, Any]) -> None:
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    exec(compile(job["source"], _PROGRAM_NAME, "exec"), module.__dict__)


def _run_captured(job: Mapping[str, Any]) -> None:
    lines = iter(job["stdin"].split("\n"))
    builtins.input = lambda *_prompt: next(lines)
    captured = io.StringIO()
    try:
        with contextlib.redirect_stdout(captured):
            if job["one_namespace"]:
                exec(job["source"], {"__name__": "__main__"})
            else:
                seen = {"__name__": "program_judge", **{module.__name__: module for module in SEEN}}
                exec(job["source"], seen, {})
        text = captured.getvalue()
    except Exception as error:  # noqa: BLE001 - an exception of the program is its output
        text = f"ERROR during execution: {error}"
    with os.fdopen(DELIVERY, "wb") as delivery:
        delivery.write(DELIVERED + text.encode("utf-8", "surrogatepass"))
    os._exit(0)


if __name__ == "__main__":
    main()
