"""A filter of system calls: one process with threads, no network, no other program, no other process.

The calls that a Python program needs to compute are allowed. Calls that would reach outside are refused with EPERM. The
rest of the table is "not implemented", which lets the C library fall back to an older call.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
from collections.abc import Mapping, Sequence

from lmms_eval.sandbox.linux import PR_SET_NO_NEW_PRIVS, Architecture, architecture, prctl

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_KILL_PROCESS, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_LOAD, _EQUAL, _AT_LEAST, _JUMP, _AND, _RETURN = 0x20, 0x15, 0x35, 0x05, 0x54, 0x06
"""Instructions: load a word of the call's data, jump if equal, if at least as large, always, mask, return."""
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""Offsets in the call's data."""

# Name, number on x86-64, number on aarch64.
_ALLOWED_CALLS = """
read=0/63 write=1/64 readv=19/65 writev=20/66 pread64=17/67 pwrite64=18/68 preadv=295/69 pwritev=296/70 lseek=8/62
close=3/57 close_range=436/436 dup=32/23 dup2=33/- dup3=292/24 pipe=22/- pipe2=293/59 open=2/- openat=257/56
openat2=437/437 stat=4/- lstat=6/- fstat=5/80 newfstatat=262/79 statx=332/291 statfs=137/43 fstatfs=138/44 access=21/-
faccessat=269/48 faccessat2=439/439 readlink=89/- readlinkat=267/78 getcwd=79/17 chdir=80/49 fchdir=81/50
getdents=78/- getdents64=217/61 poll=7/- ppoll=271/73 select=23/- pselect6=270/72 epoll_create1=291/20
epoll_ctl=233/21 epoll_wait=232/- epoll_pwait=281/22 eventfd2=290/19 umask=95/166 flock=73/32 fsync=74/82
ftruncate=77/46 mmap=9/222 munmap=11/215 mprotect=10/226 mremap=25/216 madvise=28/233 brk=12/214 msync=26/227
rt_sigaction=13/134 rt_sigprocmask=14/135 rt_sigreturn=15/139 rt_sigpending=127/136 rt_sigtimedwait=128/137
rt_sigsuspend=130/133 sigaltstack=131/132 restart_syscall=219/128 pause=34/- futex=202/98 futex_waitv=449/449
set_robust_list=273/99 rseq=334/293 set_tid_address=218/96 membarrier=324/283 getcpu=309/168 arch_prctl=158/-
sched_yield=24/124 sched_getaffinity=204/123 sched_getparam=143/121 sched_getscheduler=145/120 getpid=39/172
gettid=186/178 getppid=110/173 getpgrp=111/- getpgid=121/155 getsid=124/156 getuid=102/174 geteuid=107/175
getgid=104/176 getegid=108/177 getresuid=118/148 getresgid=120/150 getgroups=115/158 uname=63/160 sysinfo=99/179
getrusage=98/165 times=100/153 getrlimit=97/163 setrlimit=160/164 getpriority=140/141 clock_gettime=228/113
clock_getres=229/114 clock_nanosleep=230/115 nanosleep=35/101 gettimeofday=96/169 time=201/- alarm=37/-
setitimer=38/103 getitimer=36/102 wait4=61/260 waitid=247/95 exit=60/93 exit_group=231/94 getrandom=318/278
"""
_REFUSED_CALLS = """
fork=57/- vfork=58/- execve=59/221 execveat=322/281 socket=41/198 socketpair=53/199 connect=42/203 bind=49/200
sendto=44/206 ptrace=101/117 process_vm_readv=310/270 process_vm_writev=311/271 pidfd_open=434/434 setsid=112/157
setpgid=109/154 unshare=272/97 setns=308/268 mount=165/40 chmod=90/- fchmod=91/52 fchmodat=268/53 chown=92/-
fchown=93/55 fchownat=260/54 mkdir=83/- mkdirat=258/34 unlink=87/- unlinkat=263/35 rename=82/- renameat=264/38
symlink=88/- symlinkat=266/36 link=86/- linkat=265/37 setuid=105/146 setgid=106/144 memfd_create=319/279 bpf=321/280
perf_event_open=298/241 userfaultfd=323/282 keyctl=250/219 add_key=248/217 io_uring_setup=425/425
"""
_CHECKED_CALLS = """
ioctl=16/29 prctl=157/167 clone=56/220 prlimit64=302/261 kill=62/129 tkill=200/130 tgkill=234/131 fcntl=72/25
"""
_THREAD = 0x00010000
_NEW_NAMESPACES = 0x7E020000
_TERMINAL_AND_PIPE_QUESTIONS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
_FILE_COMMANDS = (0, 1, 2, 3, 4, 5, 6, 7, 1030)
"""File commands, except those that make the kernel send signals."""
_NAMES_OF_THREADS_AND_MEMORY = (15, 16, 0x53564D41)
_OWN_PROCESS = 0x6E776F6C
"""Replaced by the number of the program's process; larger than any, and no other part of the code has these bytes."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def install(allow_threads: bool = True) -> None:
    """Install the filter for this process; needs no privilege. Raises ``OSError``."""
    code = build(os.getpid(), allow_threads)
    instructions = ctypes.create_string_buffer(code, len(code))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(_PR_SET_SECCOMP, _MODE_FILTER, _Program(len(code) // 8, ctypes.addressof(instructions)))


def build(own_process: int, allow_threads: bool = True) -> bytes:
    """Build the filter's code for a process that may signal only itself. Raises ``OSError`` on an unknown processor.

    ``allow_threads`` requires that their number is limited by other means.
    """
    form = _form(architecture(), allow_threads)
    return form.replace(struct.pack("=I", _OWN_PROCESS), struct.pack("=I", own_process))


@functools.cache
def _form(machine: Architecture, allow_threads: bool) -> bytes:
    """Build the code with ``_OWN_PROCESS`` in place of the process's number, once for all programs."""
    column = machine.column
    code = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, machine.audit, skip_if=1),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_LOAD, _NUMBER),
    ]
    allowed, refused = [_instruction(_RETURN, _ALLOW)], [_instruction(_RETURN, _ERRNO | errno.EPERM)]
    decisions = dict.fromkeys(_numbers(_REFUSED_CALLS, column).values(), refused)
    for name, number in _numbers(_CHECKED_CALLS, column).items():
        decisions[number] = refused if name == "clone" and not allow_threads else _check(name)
    decisions |= dict.fromkeys(_numbers(_ALLOWED_CALLS, column).values(), allowed)
    return b"".join([*code, *_search(_ranges(decisions))])


def _ranges(decisions: Mapping[int, list[bytes]]) -> list[tuple[int, list[bytes]]]:
    """Return the first number of each range of calls with the same decision; calls without one are not implemented."""
    unknown = [_instruction(_RETURN, _ERRNO | errno.ENOSYS)]
    found = [(0, decisions.get(0, unknown))]
    for number in range(1, max(decisions) + 2):
        decision = decisions.get(number, unknown)
        if decision != found[-1][1]:
            found.append((number, decision))
    return found


def _search(ranges: Sequence[tuple[int, list[bytes]]]) -> list[bytes]:
    """Return code that finds the decision of a call's number by halving.

    The kernel runs the code for every number when it installs the filter.
    """
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    lower, upper = _search(ranges[:middle]), _search(ranges[middle:])
    first = ranges[middle][0]
    if len(lower) < 256:  # a conditional jump is no longer
        return [_instruction(_AT_LEAST, first, skip_if=len(lower)), *lower, *upper]
    return [_instruction(_AT_LEAST, first, skip_unless=1), _instruction(_JUMP, len(lower)), *lower, *upper]


def _check(name: str) -> list[bytes]:
    """Return the instructions that decide a call by one of its arguments."""
    if name == "clone":
        mask = _instruction(_AND, _THREAD | _NEW_NAMESPACES)
        return [_instruction(_LOAD, _ARGUMENTS), mask, *_one_of((_THREAD,))]
    argument, values = {
        "ioctl": (1, _TERMINAL_AND_PIPE_QUESTIONS),
        "fcntl": (1, _FILE_COMMANDS),
        "prctl": (0, _NAMES_OF_THREADS_AND_MEMORY),
        "prlimit64": (0, (0, _OWN_PROCESS)),
    }.get(name, (0, (_OWN_PROCESS,)))
    return [_instruction(_LOAD, _ARGUMENTS + 8 * argument), *_one_of(values)]


def _one_of(values: tuple[int, ...]) -> list[bytes]:
    tests = [_instruction(_EQUAL, value, skip_if=len(values) - index) for index, value in enumerate(values)]
    return [*tests, _instruction(_RETURN, _ERRNO | errno.EPERM), _instruction(_RETURN, _ALLOW)]


def _instruction(code: int, value: int, skip_if: int = 0, skip_unless: int = 0) -> bytes:
    return struct.pack("=HBBI", code, skip_if, skip_unless, value)


def _numbers(table: str, column: int) -> dict[str, int]:
    """Return the numbers by name, without the calls that this processor lacks."""
    found = {}
    for entry in table.split():
        name, _, numbers = entry.partition("=")
        number = numbers.split("/")[column]
        if number != "-":
            found[name] = int(number)
    return found
