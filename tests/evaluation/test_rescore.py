"""Scoring a recorded run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lmms_eval.api.registry import ModelManifest
from lmms_eval.api.request import Request, Response, Usage
from lmms_eval.evaluation.rescore import rescore
from lmms_eval.evaluation.run import run
from lmms_eval.models import registry
from lmms_eval.storage.run_folder import RunFolder
from tests.evaluation.kit import DOCUMENTS, NAME, Told, config, right, run_folders
from tests.media.draw import write_video
from tests.tasks.kit import BASE, write_rows, write_yaml

PLUGIN = """
from lmms_eval.api.model import Model
from lmms_eval.api.request import Response


class Patient(Model):
    ignored_arguments = {"conv_*": "it has no template"}

    def respond(self, stream):
        while batch := stream.take(1):
            yield Response(batch[0].id, text=batch[0].context.partition("ANSWER=")[2])
"""


def test_a_run_with_an_ignored_argument_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "patient_model.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    manifest = ModelManifest("patient", chat_class_path="patient_model.Patient")
    monkeypatch.setattr(registry, "BUILTIN_MANIFESTS", (*registry.BUILTIN_MANIFESTS, manifest))
    first = run(config(tmp_path, model="patient", model_args="conv_template=a"))
    again = rescore(tmp_path / "out", {})
    assert again.results["results"][NAME] == first.results["results"][NAME]
    assert again.results["run_key"] == first.results["run_key"]


def test_answers_are_scored_again_without_the_files_that_were_shown(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    video = write_video(tmp_path / "v.mp4", 2)
    write_rows(tmp_path / "tasks", [{"q": "?", "a": "yes", "video": str(video)}])
    keys = {"doc_to_text": "q", "doc_to_target": "a", "doc_to_visual": "video", "media_archive": "2 GB"}
    write_yaml(tmp_path / "tasks" / "probe.yaml", {**BASE, **keys})
    first = run(config(tmp_path, tasks="probe"))
    video.unlink()
    assert rescore(tmp_path / "out", {}).results["results"] == first.results["results"]


def test_a_run_of_several_processes_that_ended_at_its_budget_is_scored_again(tmp_path: Path) -> None:
    def counted(request: Request) -> Response:
        return replace(right(request), usage=Usage(10, 2))

    begun = run(config(tmp_path, model="told", max_tokens=36, output_path=str(tmp_path / "b")), Told(counted))
    assert begun.exit_code == 3
    (folder,) = run_folders(tmp_path / "b")
    record = RunFolder(folder)
    content = record.read()
    record.write({**content, "arguments": {**content["arguments"], "processes": 2}})
    again = rescore(tmp_path / "b", {})
    assert again.results["outcomes"][NAME]["scored"] == 3
    assert not any("the budget of" in line for line in again.lines)


def _samples(tmp_path: Path, answer: Any, out: str) -> Path:
    run(config(tmp_path, output_path=str(tmp_path / out), log_samples=True), Told(answer, out))
    return next((tmp_path / out).rglob("*_samples_*.jsonl"))


def _replayed(tmp_path: Path, samples: Path, out: str) -> tuple[int, dict[str, Any], dict[str, Any]]:
    options = {"model": "replay", "model_args": f"path={samples}", "output_path": str(tmp_path / out)}
    report = run(config(tmp_path, **options))
    return report.exit_code, report.results["results"][NAME], report.results["outcomes"][NAME]


def test_replay_over_a_reordered_data_set_scores_no_answer_on_another_document(tmp_path: Path) -> None:
    samples = _samples(tmp_path, right, "out")
    assert _replayed(tmp_path, samples, "same")[1]["exact_match,none"] == 1
    (data,) = (tmp_path / "tasks").glob("*.jsonl")
    first, second, *others = data.read_text(encoding="utf-8").splitlines()
    data.write_text("\n".join([second, first, *others]), encoding="utf-8")
    code, scores, outcome = _replayed(tmp_path, samples, "reordered")
    assert (code, scores["exact_match,none"]) == (3, None)
    assert (outcome["failed"], outcome["scored"]) == (2, DOCUMENTS - 2)
    assert any("answers another document" in reason for reason in outcome["reasons"])


def test_a_withheld_run_is_withheld_when_it_is_replayed(tmp_path: Path) -> None:
    def filtered(request: Request) -> Response:
        return replace(right(request), finish_reason="content_filter")

    samples = _samples(tmp_path, filtered, "out")
    code, scores, outcome = _replayed(tmp_path, samples, "again")
    assert (code, scores["exact_match,none"], outcome["filtered"]) == (3, None, DOCUMENTS)
