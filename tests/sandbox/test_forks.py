from __future__ import annotations

import os

from lmms_eval.sandbox.threads import in_fork


def test_in_fork() -> None:
    def fail() -> None:
        raise OSError("no such luck")

    def die() -> None:
        os.kill(os.getpid(), 9)

    def change() -> None:
        os.environ["CHANGED_IN_FORK"] = "1"

    assert in_fork(change) == ""
    assert "CHANGED_IN_FORK" not in os.environ
    assert in_fork(fail) == "no such luck"
    assert "status" in in_fork(die)
