"""Serving ends by a signal, whenever it comes, and the address that is told is the one that answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.installed import needs_ipv6
from tests.server.process import running_server

SERVE = """
import signal, sys
from pathlib import Path
from lmms_eval.server.app import serve
from lmms_eval.server.settings import ServerSettings

serve(ServerSettings(folder=Path(sys.argv[1]), port=0), lambda line: signal.raise_signal(signal.SIGINT))
"""
TOOLS = """
import signal, sys
from lmms_eval.cli import mcp

mcp.complain = lambda line: signal.raise_signal(signal.SIGINT)
sys.exit(mcp.run(["--transport", "http", "--port", "0", "--folder", sys.argv[1]]))
"""


@pytest.mark.parametrize(("program", "needs"), [(SERVE, "uvicorn"), (TOOLS, "mcp")], ids=["serve", "mcp"])
def test_a_signal_in_the_moment_in_which_the_address_is_told_ends_the_server(
    program: str, needs: str, tmp_path: Path
) -> None:
    pytest.importorskip(needs)
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_server_on_ipv6_tells_its_address_in_brackets_and_answers_there(tmp_path: Path) -> None:
    needs_ipv6()
    with running_server(tmp_path / "server", "--host", "::1") as server:
        assert str(server.client.base_url).startswith("http://[::1]:")
        assert server.client.get("/queue").status_code == 200
