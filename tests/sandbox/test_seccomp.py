"""The filter's code, run by a small interpreter: it decides as the kernel would, for both processors."""

from __future__ import annotations

import errno
import platform
import struct

import pytest

from lmms_eval.sandbox import seccomp
from lmms_eval.sandbox.seccomp import build

OWN = 4242
ALLOW, KILL = "allow", "kill"
NUMBERS = {  # of the calls tested here, from the kernel's tables
    "x86_64": {"read": 0, "openat": 257, "clone": 56, "clone3": 435, "kill": 62, "tgkill": 234, "socket": 41},
    "aarch64": {"read": 63, "openat": 56, "clone": 220, "clone3": 435, "kill": 129, "tgkill": 131, "socket": 198},
}
MORE = {
    "x86_64": {"execve": 59, "ptrace": 101, "ioctl": 16, "fcntl": 72, "prctl": 157, "prlimit64": 302, "connect": 42},
    "aarch64": {"execve": 221, "ptrace": 117, "ioctl": 29, "fcntl": 25, "prctl": 167, "prlimit64": 261, "connect": 203},
}
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def decide(code: bytes, number: int, arguments: tuple[int, ...], audit: int) -> str | int:
    """``allow``, ``kill`` or the error number."""
    description = struct.pack("=IIQ6Q", number, audit, 0, *(*arguments, *[0] * (6 - len(arguments))))
    accumulator, position = 0, 0
    while True:
        operation, if_true, if_false, value = struct.unpack_from("=HBBI", code, 8 * position)
        position += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", description, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                position += if_true if accumulator == value else if_false
            case 0x35:
                position += if_true if accumulator >= value else if_false
            case 0x05:
                position += value
            case 0x06:
                if value == 0x7FFF0000:
                    return ALLOW
                return KILL if value == 0x80000000 else value & 0xFFFF
            case _:
                raise AssertionError(f"unknown instruction {operation:#x}")


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(platform, "machine", lambda: request.param)
    return str(request.param)


@pytest.mark.parametrize(
    ("call", "arguments", "decision"),
    [
        ("read", (), ALLOW),
        ("openat", (), ALLOW),
        ("clone", (0x3D0F00,), ALLOW),  # what starts a thread
        ("clone", (0x01200011,), errno.EPERM),  # what forks
        ("clone", (0x4111,), errno.EPERM),
        ("clone", (0x10010000,), errno.EPERM),
        ("clone3", (), errno.ENOSYS),
        ("kill", (OWN, 9), ALLOW),
        ("kill", (1, 9), errno.EPERM),
        ("kill", (0xFFFFFFFF, 9), errno.EPERM),
        ("kill", (0, 9), errno.EPERM),
        ("tgkill", (OWN, OWN + 1, 9), ALLOW),
        ("tgkill", (OWN + 1, OWN, 9), errno.EPERM),
        ("socket", (), errno.EPERM),
        ("connect", (), errno.EPERM),
        ("execve", (), errno.EPERM),
        ("ptrace", (), errno.EPERM),
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x5412), errno.EPERM),  # puts characters into a terminal
        ("fcntl", (0, 3), ALLOW),
        ("fcntl", (0, 8), errno.EPERM),
        ("prctl", (15,), ALLOW),
        ("prctl", (1,), errno.EPERM),
        ("prlimit64", (0,), ALLOW),
        ("prlimit64", (OWN,), ALLOW),
        ("prlimit64", (1,), errno.EPERM),
    ],
)
def test_decisions(call: str, arguments: tuple[int, ...], decision: str | int, machine: str) -> None:
    number = (NUMBERS[machine] | MORE[machine])[call]
    assert decide(build(OWN), number, arguments, AUDIT[machine]) == decision


def test_every_number_is_decided_as_the_tables_say(machine: str) -> None:
    column = list(AUDIT).index(machine)
    tables = [seccomp._numbers(table, column) for table in (seccomp._ALLOWED_CALLS, seccomp._REFUSED_CALLS)]
    checked = set(seccomp._numbers(seccomp._CHECKED_CALLS, column).values())
    allowed, refused = ({*table.values()} for table in tables)
    assert not allowed & refused
    assert not checked & (allowed | refused)
    code = build(OWN)
    for number in {*range(1000), 1 << 30, (1 << 32) - 1} - checked:
        expected = ALLOW if number in allowed else errno.EPERM if number in refused else errno.ENOSYS
        assert decide(code, number, (), AUDIT[machine]) == expected, number


def test_threads_may_be_refused(machine: str) -> None:
    code = build(OWN, allow_threads=False)
    for name, decision in (("clone", errno.EPERM), ("clone3", errno.ENOSYS), ("kill", ALLOW), ("read", ALLOW)):
        number = (NUMBERS[machine] | MORE[machine])[name]
        arguments = (0x3D0F00,) if name == "clone" else (OWN,)
        assert decide(code, number, arguments, AUDIT[machine]) == decision, name


def test_unknown_calls_and_other_tables(machine: str) -> None:
    code = build(OWN)
    assert len(code) // 8 < 4096
    assert decide(code, 9999, (), AUDIT[machine]) == errno.ENOSYS
    assert decide(code, NUMBERS[machine]["read"] | 0x40000000, (), AUDIT[machine]) == errno.ENOSYS
    assert decide(code, NUMBERS[machine]["read"], (), 0x40000003) == KILL


def test_other_processors_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(OSError, match="riscv64"):
        build(OWN)
