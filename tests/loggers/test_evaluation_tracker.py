"""Files that ``EvaluationTracker`` writes; its ordinary use is a step of ``tests/test_family_api.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.errors import UsageError
from lmms_eval.loggers.evaluation_tracker import EvaluationTracker
from lmms_eval.utils.redaction import learn_secrets


def test_the_models_folder_and_no_secrets(tmp_path: Path) -> None:
    learn_secrets({"api_key": "very-secret-value"}, {})
    tracker = EvaluationTracker(str(tmp_path), token="t")
    tracker.general_config_tracker.log_experiment_args("hf", "pretrained=org/m")
    tracker.save_results_aggregated(
        {"results": {}, "at": "very-secret-value", "samples": {}}, None, "2026-01-01T00:00:00"
    )
    (file,) = tmp_path.rglob("*_results.json")
    assert file.relative_to(tmp_path).as_posix() == "org__m/2026-01-01T00-00-00_results.json"
    assert "very-secret-value" not in file.read_text() and "samples" not in file.read_text()


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tracker = EvaluationTracker()
    tracker.save_results_aggregated({}, {}, "d")
    tracker.save_results_samples("t", [])
    assert list(tmp_path.rglob("*")) == []


def test_pushing_is_refused_and_the_order_is_told(tmp_path: Path) -> None:
    for name in ("push_results_to_hub", "push_samples_to_hub"):
        with pytest.raises(UsageError, match="hf_hub_log_args"):
            EvaluationTracker(**{name: True})
    with pytest.raises(UsageError, match="save_results_aggregated first"):
        EvaluationTracker(str(tmp_path)).save_results_samples("t", [])
