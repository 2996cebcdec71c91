"""The recorded conversation with the family's server, held with a real one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.parity.discovery import load_rules
from tests.parity.vectors import GOLDEN_DIR
from tests.server.process import ServerProcess, running_server

RECORDS = GOLDEN_DIR / "harness" / "http.jsonl"
INPUTS = GOLDEN_DIR / "harness" / "inputs"
pytestmark = pytest.mark.skipif(not RECORDS.is_file(), reason=f"no recorded conversation at {RECORDS}")
MORE_KEYS = {"/queue": {"running_jobs"}}
"""Keys of ours beside the family's."""
DEVIATIONS = {"POST /merge": ("server_merges_by_itself", 404, "checkpoint_path: there is no such folder")}

UNKNOWN = ["nope_task"]
"""Tasks that the family's server queues and ours refuses (``server_refuses_unknown_names``)."""


def _refused(server: ServerProcess, record: dict[str, Any], missing: Path) -> dict[str, Any]:
    """Hold a record with an unknown task to the refusal; return it with a request that is queued and then fails."""
    assert "server_refuses_unknown_names" in load_rules().deviations
    answer = server.client.post("/evaluate", json=record["json"])
    (detail,) = answer.json()["detail"]
    assert (answer.status_code, detail["loc"]) == (422, ["body", "tasks"])
    assert detail["msg"].startswith("tasks: unknown task 'nope_task'")
    wanted = {"model": "replay", "model_args": {"path": str(missing)}, "tasks": ["gold_short"]}
    return {**record, "json": wanted}


def _fits(wanted: Any, got: Any, names: dict[str, str]) -> bool:
    """Compare with a record, in which ``<...>`` stand for what differs each time; ids are learnt where first seen."""
    if isinstance(wanted, dict):
        return (
            isinstance(got, dict) and wanted.keys() == got.keys() and all(_fits(wanted[k], got[k], names) for k in got)
        )
    if isinstance(wanted, list):
        return (
            isinstance(got, list) and len(wanted) == len(got) and all(map(lambda a, b: _fits(a, b, names), wanted, got))
        )
    if not isinstance(wanted, str):
        return type(wanted) is type(got) and wanted == got
    if wanted.startswith("<UUID") and wanted.endswith(">"):
        return isinstance(got, str) and names.setdefault(wanted, got) == got
    for name, text in names.items():
        wanted = wanted.replace(name, text)
    pattern = re.escape(wanted)
    for mark, form in (("<ISO>", r"\d{4}-\d\d-\d\dT[\d:.+]+"), ("<DATE>", r"\d{8}_\d{6}"), ("<DIR>", r"/.+")):
        pattern = pattern.replace(re.escape(mark), form)
    return isinstance(got, str) and re.fullmatch(pattern, got) is not None


def _ask(server: ServerProcess, record: dict[str, Any], names: dict[str, str], missing: Path) -> Any:
    method, _, place = record["request"].partition(" ")
    for name, text in names.items():
        place = place.replace(name, text)
    if record.get("when") == "finished":
        server.wait(place.rpartition("/")[2])
    body = record.get("json")
    if body is not None:
        body = json.loads(json.dumps(body).replace("<MISSING>", str(missing)))
    return server.client.request(method, place, json=body)


def test_every_recorded_exchange_is_repeated(tmp_path: Path) -> None:
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    assert len(records) >= 9
    names: dict[str, str] = {}
    words = ("--include_path", str(INPUTS / "tasks"), "--allow_path", str(tmp_path))
    with running_server(tmp_path / "server", *words, PYTHONPATH=str(INPUTS / "plugin")) as server:
        for record in records:
            if record.get("json", {}).get("tasks") == UNKNOWN:
                record = _refused(server, record, tmp_path / "missing.jsonl")
            answer = _ask(server, record, names, tmp_path / "missing")
            status, body = record["status"], answer.json()
            if record["request"] in DEVIATIONS:
                rule, status, detail = DEVIATIONS[record["request"]]
                assert rule in load_rules().deviations
                assert body == {"detail": detail}
            else:
                for key in MORE_KEYS.get(record["request"].partition(" ")[2], ()):
                    del body[key]
                assert _fits(record["body"], body, names), (record, body)
            assert answer.status_code == status, answer.text
        ended = {server.wait(job)["status"] for job in names.values()}
        assert ended == {"completed", "failed", "cancelled"}
        failed = server.job(names["<UUID-2>"])
        assert "missing.jsonl" in failed["error"]
        assert failed["result"] is None


def test_the_comparison_can_fail() -> None:
    wanted = {"job_id": "<UUID-1>", "at": "<ISO>", "n": 1}
    names: dict[str, str] = {}
    assert _fits(wanted, {"job_id": "a", "at": "2026-01-01T00:00:00.5+00:00", "n": 1}, names)
    assert names == {"<UUID-1>": "a"}
    assert not _fits(wanted, {"job_id": "b", "at": "2026-01-01T00:00:00+00:00", "n": 1}, names)
    assert not _fits(wanted, {"job_id": "a", "at": "soon", "n": 1}, names)
    assert not _fits(wanted, {"job_id": "a", "at": "2026-01-01T00:00:00+00:00", "n": True}, names)
