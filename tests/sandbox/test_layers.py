from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lmms_eval.sandbox import layers
from lmms_eval.sandbox.confine import Setup
from lmms_eval.sandbox.layers import (
    CONFINES,
    Layer,
    bubblewrap,
    clean_environment,
    interpreter,
    probe_bubblewrap,
    probe_layers,
)
from lmms_eval.sandbox.policy import not_confined
from tests.cases import for_each


def test_every_layer_is_reported_once_with_what_it_does_or_why_not() -> None:
    found = probe_layers()
    assert sorted(layer.name for layer in found) == sorted(CONFINES)
    assert all(layer.detail for layer in found)
    assert probe_layers() is found


def test_inactive_layers_confine_nothing() -> None:
    assert Layer("seccomp", True, "").confines == ("network", "processes")
    assert Layer("seccomp", False, "").confines == ()
    assert Layer("another", True, "").confines == ()


@pytest.mark.skipif(sys.platform != "linux", reason="layers of Linux")
def test_a_probe_that_fails_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "interpreter", lambda: ["/bin/false"])
    monkeypatch.setenv("PATH", "/nowhere")
    found = {layer.name: layer for layer in probe_layers.__wrapped__()}
    assert not any(
        found[name].active for name in ("namespaces", "landlock", "seccomp", "no_new_privs", "threads", "bubblewrap")
    )
    assert found["seccomp"].detail.startswith("the attempt failed")
    assert found["bubblewrap"].detail == "no program bwrap"
    assert found["limits"].active


@pytest.mark.skipif(sys.platform != "linux", reason="layers of Linux")
def test_the_probe_says_what_it_means_that_threads_are_not_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = {**dict.fromkeys(("namespaces", "landlock", "seccomp", "no_new_privs"), ""), "threads": "no user"}
    monkeypatch.setattr(layers, "_ask", lambda *_: reasons)
    found = {layer.name: layer for layer in probe_layers.__wrapped__()}
    assert not found["threads"].active
    assert found["threads"].detail == "no user; programs have no threads"
    assert not_confined(list(found.values())) == ()


def test_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers.sys, "platform", "darwin")
    assert [layer.name for layer in probe_layers.__wrapped__() if layer.active] == ["limits"]


def test_a_program_of_that_name_that_confines_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its inside can reach the machine: the probe looks, and does not take its word."""
    fake = tmp_path / "bwrap"
    fake.write_text('#!/bin/sh\nwhile [ "$1" != "--chdir" ]; do shift; done\nshift 2\nexec "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (layer,) = probe_bubblewrap(Setup(str(tmp_path)))
    assert not layer.active
    assert layer.detail == "processes of the machine are visible"


def test_the_child_starts_bare() -> None:
    command = interpreter()
    assert {"-P", "-s", "-S"} <= set(command)
    assert not Path(command[0]).is_symlink()
    assert set(clean_environment()) == {
        "PATH",
        "LANG",
        "HOME",
        "PYTHONHASHSEED",
        "OPENBLAS_NUM_THREADS",
        "MALLOC_ARENA_MAX",
    }


def test_bubblewrap_shows_no_folder_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/home/someone/project", *sys.path])
    command = bubblewrap("/usr/bin/bwrap", Setup("/nowhere", enclosed=True))
    shown = {command[index + 1] for index, word in enumerate(command) if word == "--ro-bind"}
    assert "/home/someone/project" not in shown
    assert not shown & {"/", "/home", "/root", "/etc", "/tmp", str(Path.cwd()), str(Path.home())}
    assert "--as-pid-1" in command


@for_each("user", [0, 1000])
def test_bubblewrap_leaves_root_what_bounds_its_threads(user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    command = bubblewrap("/usr/bin/bwrap", Setup("/nowhere", enclosed=True))
    added = [command[index + 1] for index, word in enumerate(command) if word == "--cap-add"]
    assert added == (["CAP_SETUID"] if user == 0 else [])
    assert ("--unshare-all" in command) == (user != 0)
    assert ({"--unshare-net", "--unshare-pid", "--unshare-ipc"} <= set(command)) == (user == 0)
