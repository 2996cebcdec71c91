"""How errors of task code are explained: what this machine lacks, and what helps."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.api.task import TaskOptions
from lmms_eval.checks.findings import Finding, finding, of_reason, of_request
from lmms_eval.errors import MissingDataError, TaskError
from lmms_eval.tasks.data.hub import OFFLINE_IS_SET
from lmms_eval.tasks.yaml.functions import FunctionRef
from lmms_eval.tasks.yaml.loader import YamlReader
from lmms_eval.tasks.yaml.task import TaskSource, YamlTask
from tests.tasks.kit import BASE, write_yaml


def imported(folder: Path, code: str) -> Finding:
    """Return the finding about a module that cannot be imported."""
    (folder / "utils.py").write_text(code, encoding="utf-8")
    with pytest.raises(TaskError) as raised:
        FunctionRef("utils.score", str(folder / "task.yaml")).resolve("process_results")
    return finding("functions", raised.value)


@pytest.mark.parametrize(
    ("code", "kind", "cause"),
    [
        ("import os\nos.environ['NOBODYS_FOLDER']\n", "environment variable missing",
         "NOBODYS_FOLDER: set this environment variable"),
        ("raise ValueError('NOBODYS_API_KEY is required for the judge.')\n", "environment variable missing",
         "NOBODYS_API_KEY: set this environment variable"),
        ("raise KeyError('colour')\n", "code raises", "KeyError: 'colour'"),
        ("API_KEY\n", "code raises", "NameError: name 'API_KEY' is not defined"),
        ("raise ValueError('LC_NOBODY is odd')\n", "code raises", "ValueError: LC_NOBODY is odd"),
        ("try:\n    from nobodys_nodes import Node\nexcept ImportError:\n    pass\ndef size(node: Node): ...\n",
         "package missing", "nobodys_nodes: pip install nobodys-nodes"),
        ("try:\n    import json as names\nexcept ImportError:\n    pass\ndel names\nnames\n", "code raises",
         "NameError: name 'names' is not defined"),
        ("try:\n    import nobodys_first, nobodys_second, nobodys_first.part\nexcept ImportError as error:\n"
         "    raise ValueError('x') from error\n", "package missing",
         "nobodys_first, nobodys_second: pip install nobodys-first nobodys-second"),
        ("def size(node: Node): ...\n", "code raises", "NameError: name 'Node' is not defined"),
        ("from datasets import load_metric\n", "package of another version",
         f"datasets {datasets.__version__} has no load_metric"),
        ("import sys\nsys.exit('swipl is not installed or not in PATH')\n", "program missing",
         "swipl is not installed or not in PATH"),
    ],
)  # fmt: skip
def test_modules_that_cannot_be_imported(tmp_path: Path, code: str, kind: str, cause: str) -> None:
    found = imported(tmp_path, code)
    assert (found.status, found.kind) == ("failed", kind)
    assert found.cause.startswith(cause)
    assert cause.partition(":")[0] in found.message


def test_a_key_that_is_set_is_not_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOBODYS_API_KEY", "set")
    assert imported(tmp_path, "raise ValueError('NOBODYS_API_KEY is too short')\n").kind == "code raises"
    assert of_reason("gold", "ValueError: NOBODYS_API_KEY is too short").kind == "scoring raises"
    monkeypatch.delenv("NOBODYS_API_KEY")
    found = of_reason("gold", "ValueError: NOBODYS_API_KEY is not set")
    assert (found.kind, found.cause) == (
        "environment variable missing", "NOBODYS_API_KEY: set this environment variable"
    )  # fmt: skip


CLIENT = """\
import os
from keyed_client import Client

def made():
    key = os.getenv("Nobodys_Access", "")
    return Client(
        api_key=key,
    )
"""


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("made()\n", "Nobodys_Access"),
        ("Client(api_key=os.environ.get('NOBODYS_PASS'))\n", "NOBODYS_PASS"),
        ("Client()\n", "NOBODYS_API_KEY"),
        ("Client(api_key='')\n", "NOBODYS_API_KEY"),
    ],
)
def test_the_variable_that_code_passes_as_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, name: str
) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    code = "class Client:\n    def __init__(self, api_key=None):\n        raise OSError('set NOBODYS_API_KEY')\n"
    (library / "keyed_client.py").write_text(code)
    monkeypatch.syspath_prepend(library)
    assert imported(tmp_path, CLIENT + call).cause == f"{name}: set this environment variable"


def test_data_that_the_libraries_do_not_get_offline(tmp_path: Path) -> None:
    text = "ConnectionError: a frame of signs; Couldn't reach 'x/y' on the Hub (OfflineModeIsEnabled)"
    found = imported(tmp_path, f"raise OSError({text!r})\n")
    assert (found.status, found.kind) == ("skipped", "data not downloaded")


def test_data_that_only_the_check_does_not_ask_for() -> None:
    cause = ConnectionError("the hub")
    error = MissingDataError(f"data set 'x/y' is not on this machine, and {OFFLINE_IS_SET}: fetch it")
    error.__cause__ = cause
    message = finding("data", error).message
    assert message.startswith("data set 'x/y' is not on this machine: fetch it; a check looks into the cache only (")


def test_a_model_without_an_answer() -> None:
    found = of_request("text", "failed: connection: cannot reach http://x")
    assert (found.status, found.kind) == ("failed", "the model does not answer")
    assert found.message == "the model does not answer: failed: connection: cannot reach http://x"
    assert of_request("text", "NOBODYS_API_KEY is not set").kind == "environment variable missing"


def test_what_no_sandbox_confines_is_skipped(tmp_path: Path) -> None:
    reason = "programs are not run: nothing confines their files; --allow_unsafe_code runs programs without"
    code = f"from lmms_eval.api.outcome import NotEvaluated\nraise NotEvaluated({reason!r})\n"
    found = imported(tmp_path, code)
    assert (found.status, found.kind, found.cause) == ("skipped", "cannot be scored here", reason)
    assert finding("functions", NotEvaluated(reason)).status == "skipped"


def test_an_empty_entry_is_a_fault_of_the_file(tmp_path: Path) -> None:
    file = write_yaml(tmp_path / "task.yaml", {**BASE, "metric_list": [None]})
    with pytest.raises(TaskError) as raised:
        YamlTask(TaskSource("probe", str(file), YamlReader().read(file), {}), TaskOptions())
    found = finding("functions", raised.value)
    assert (found.kind, found.cause.count("\n")) == ("task file wrong", 0)
