"""Child processes that may hang or die: one child, its own side, and a pool of children.

A child exchanges lines, usually JSON, with its parent over pipes. It is started fresh, not forked, since a forked child
would keep the parent's locks, sockets and GPU memory. It has its own session, so that Ctrl-C reaches only the parent,
and must end when its standard input ends (``Parent`` sees to that).
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, TypeVar

from lmms_eval.utils.terminal import guard_standard_error

ENDING_S = 1.0
"""Seconds after the end of its input until a child that is still working ends itself."""
SENDING_S = 600.0
"""Seconds until a child must have read a line: it may still be importing its packages."""
KEPT_BYTES = 4000
"""Bytes of standard error that are kept."""
_ROOT = str(Path(__file__).parents[1])


class Parent:
    """The child's side of a ``Child``: receives the lines of the parent, which iteration yields, and sends replies.

    This takes over standard input and output: from now on, foreign code prints to standard error and reads nothing.
    When the parent closes the pipe or dies, the iteration ends, and so does the process soon after that, even in the
    middle of its work.
    """

    def __init__(self) -> None:
        incoming, self._replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        guard_standard_error()
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._is_gone = False
        threading.Thread(target=self._read, args=(incoming,), daemon=True).start()

    def _read(self, incoming: IO[bytes]) -> None:
        for line in incoming:
            self._lines.put(line)
        self._lines.put(b"")
        time.sleep(ENDING_S)
        os._exit(1)

    def __iter__(self) -> Iterator[bytes]:
        while not self._is_gone and (line := self._lines.get()):
            yield line

    def receive(self, timeout_s: float | None = None) -> bytes:
        """Return the next line, which is empty at the end of the input. Raises ``queue.Empty`` after the timeout."""
        return self._lines.get(timeout=timeout_s)

    def send(self, line: bytes) -> None:
        """Write one line (without its newline). Lines for a parent that is gone are dropped."""
        try:
            self._replies.write(line + b"\n")
            self._replies.flush()
        except BrokenPipeError:
            self._is_gone = True


def do_without(*packages: str) -> None:
    """Let imports of packages fail in this process, as if they were not installed.

    For libraries that import large packages, if these are there, for parts that the process does not use. The process
    must run no code of users.
    """
    for name in packages:
        sys.modules[name] = None  # type: ignore[assignment]  # what the import system takes for "not found"


def module_command(module: str) -> list[str]:
    """Return the command that runs a module with this interpreter.

    The working folder is on the new process's path only if it is on this one's. With ``-m`` alone, a user's
    ``types.py`` would replace Python's.
    """
    shows_folder = "" in sys.path
    with contextlib.suppress(FileNotFoundError):  # the working folder was deleted
        shows_folder = shows_folder or sys.path[:1] == [os.getcwd()]
    return [sys.executable, *([] if shows_folder else ["-P"]), "-m", module]


def descendants(pid: int) -> list[int]:
    """Return the live descendants of a process, the nearest first. Empty on systems without ``/proc``."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        for file in Path(f"/proc/{waiting.pop(0)}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                children = [int(name) for name in file.read_text().split()]
                found += children
                waiting += children
    return found


class ChildError(RuntimeError):
    """A child ended (with ``code``, or minus the signal), did not answer in time, or sent an invalid answer."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class Child:
    """A child process ``python -m MODULE`` that exchanges lines.

    After a fork, a child belongs to the process that started it: ``kill`` and ``close`` of another process leave it
    alone.

    Args:
        module: the module to run.
        environment: variables in addition to the parent's; with ``command``, all variables.
        command: command to start instead of the module.
        first: a line that is sent before all others.
        name: name of the child in errors.
        errors: what happens to the child's standard error. If it is kept, ``ChildError`` shows its last line.

    Raises:
        OSError: the process cannot be started.
    """

    kind: Hashable = None
    """A ``Pool`` uses children of one kind interchangeably."""
    jobs = 0
    """Number of jobs that it has done for a ``Pool``."""

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str] | None = None,
        *,
        command: Sequence[str] | None = None,
        first: bytes = b"",
        name: str = "",
        errors: Literal["shown", "kept", "discarded"] = "shown",
    ) -> None:
        path = os.pathsep.join([_ROOT, *(entry for entry in sys.path if entry)])
        inherited = {} if command is not None else {**os.environ, "PYTHONPATH": path}
        self._name, self._first = name or f"the process {module}", first and first + b"\n"
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            command or module_command(module),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr={"shown": None, "kept": subprocess.PIPE, "discarded": subprocess.DEVNULL}[errors],
            env={**inherited, **(environment or {})},
            start_new_session=True,
        )
        weakref.finalize(self, _drop, self._process, self._owner).atexit = False
        assert self._process.stdin is not None  # both are pipes
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._input.fileno(), False)
        self._can_write, self._can_read = select.poll(), select.poll()  # select() takes no file numbers above 1023
        self._can_write.register(self._input, select.POLLOUT)
        self._can_read.register(self._output, select.POLLIN)
        self._buffer, self._kept = bytearray(), bytearray()
        self._keeper = threading.Thread(target=self._keep_errors, daemon=True)
        if self._process.stderr is not None:
            self._keeper.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_own(self) -> bool:
        """Whether this process started the child, not one that this process was forked from."""
        return self._owner == os.getpid()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def send(self, line: bytes, timeout_s: float = SENDING_S) -> None:
        """Write one line (without its newline). Raises ``ChildError`` if the child does not read it in time."""
        left, self._first = memoryview(self._first + line + b"\n"), b""
        deadline = time.monotonic() + timeout_s
        while left:
            self._wait(self._can_write, deadline, f"no line read within {timeout_s:g} s")
            try:
                left = left[os.write(self._input.fileno(), left) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._ended() from error

    def receive(self, timeout_s: float) -> bytes:
        """Return the next line without its newline. Raises ``ChildError`` after ``timeout_s`` seconds without one."""
        deadline = time.monotonic() + timeout_s
        end = self._buffer.find(b"\n")
        while end < 0:
            self._wait(self._can_read, deadline, f"no answer within {timeout_s:g} s")
            chunk = os.read(self._output.fileno(), 1 << 20)
            if not chunk:
                raise self._ended()
            seen = len(self._buffer)
            self._buffer += chunk
            end = self._buffer.find(b"\n", seen)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def ask(self, line: bytes, timeout_s: float) -> bytes:
        """Send a line and return the next one. Raises ``ChildError``."""
        self.send(line)
        return self.receive(timeout_s)

    def kill(self) -> None:
        """Kill the process and its children at once. Any thread may call this; ``close`` must still be called."""
        if self.is_own and not self.has_ended:
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.killpg(self._process.pid, signal.SIGKILL)

    def end_input(self) -> None:
        """Let the process end, without waiting for it."""
        with contextlib.suppress(OSError):  # it has already ended
            self._input.close()

    def close(self, patience_s: float = 2 * ENDING_S) -> None:
        """End the input and wait for the end of the process. Kill it after ``patience_s`` seconds."""
        self.end_input()
        self._output.close()
        if self.is_own:
            self._end_within(patience_s)

    def _end_within(self, patience_s: float) -> int:
        """Wait for the end of the process, or kill it. Returns its exit code."""
        try:
            return self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()

    def _wait(self, pipe: select.poll, deadline: float, problem: str) -> None:
        while (left := deadline - time.monotonic()) > 0:
            if pipe.poll(left * 1000):
                return
        raise ChildError(problem)

    def _ended(self) -> ChildError:
        """Describe the end of a process that has closed its pipes."""
        code = self._end_within(2 * ENDING_S)
        if self._process.stderr is not None:
            self._keeper.join(ENDING_S)
        said = self._kept.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return ChildError(f"{self._name} ended with code {code}" + (f": {said}" if said else ""), code)

    def _keep_errors(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as errors:
            while chunk := errors.read(KEPT_BYTES):
                self._kept = (self._kept + chunk)[-KEPT_BYTES:]


def _drop(process: subprocess.Popen[bytes], owner: int) -> None:
    """Kill the process of a child that nobody closed before it was garbage-collected."""
    if process.stdin is None or process.stdin.closed or owner != os.getpid():
        return
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


Started = TypeVar("Started", bound=Child)


class Pool:
    """Children that are lent for one job at a time, from any thread.

    A job takes an idle child, or starts one. If the job raises, its child is killed, and a later job starts another.
    After a fork, both processes have children of their own.

    Args:
        most_jobs: a child is replaced after so many jobs.
    """

    def __init__(self, most_jobs: int | None = None) -> None:
        self._most_jobs = most_jobs
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._is_killed = False

    @property
    def pids(self) -> list[int]:
        """Process ids of the children."""
        with self._lock:
            return [child.pid for child in (*self._idle, *self._busy)]

    def prepare(self, count: int, start: Callable[[], Child]) -> None:
        """Start children in advance; they import their packages while there are no jobs for them."""
        for _ in range(count):
            child = start()
            with self._lock:
                self._idle.append(child)

    @contextmanager
    def lend(self, start: Callable[[], Started], kind: Hashable = None) -> Iterator[Started]:
        """Lend a child for one job.

        Args:
            start: starts a child if none is idle; whatever it raises is raised here.
            kind: children are only used again for jobs of the same kind.

        Raises:
            ChildError: the pool was killed.
        """
        with self._lock:  # children that died, did their share or belong to another process are ended
            most = self._most_jobs
            usable = [
                child
                for child in self._idle
                if child.is_own and not child.has_ended and (most is None or child.jobs < most)
            ]
            worn = [child for child in self._idle if child not in usable]
            found = next((child for child in usable if child.kind == kind), None)
            self._idle = [child for child in usable if child is not found]
        for child in worn:
            child.kill()
            child.close()
        child = found or start()
        child.kind = kind
        try:
            with self._lock:
                self._busy.add(child)
            if self._is_killed:
                raise ChildError("the pool of processes was closed")
            yield child  # type: ignore[misc]  # children of one kind are started by the same function
        except BaseException:  # re-raised, also a KeyboardInterrupt: a child in an unknown state is not lent again
            child.kill()
            with self._lock:
                self._busy.discard(child)
            child.close()
            raise
        child.jobs += 1
        with self._lock:
            self._busy.discard(child)
            self._idle.append(child)

    def kill(self) -> None:
        """Kill all children at once, those at work too. The pool takes no more jobs; ``close`` must still be called."""
        with self._lock:
            self._is_killed = True
            children = [*self._idle, *self._busy]
        for child in children:
            child.kill()

    def close(self, patience_s: float = 2 * ENDING_S) -> None:
        """End the idle children, and kill those that have not ended after ``patience_s`` seconds."""
        with self._lock:
            children, self._idle = self._idle, []
        for child in children:
            child.end_input()
        for child in children:
            child.close(patience_s)
