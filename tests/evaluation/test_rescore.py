"""Scoring a recorded run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.api.registry import ModelManifest
from lmms_eval.evaluation.rescore import rescore
from lmms_eval.evaluation.run import run
from lmms_eval.models import registry
from tests.evaluation.kit import NAME, config

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
