"""The record of settings that task files ask for a model's name."""

from __future__ import annotations

import hashlib

from lmms_eval.loggers.evaluation_tracker import GeneralConfigTracker
from tests.cases import for_each


@for_each(
    ("arguments", "name"),
    [
        ("base_model=m,pretrained=p", "p"),
        ("base_model=m", "m"),
        ("pretrained=pretrained=x", ""),
        ({"path": "q", "model": "m"}, "m"),
        ({"batch_size": 1}, ""),
    ],
)
def test_the_model_of_arguments(arguments: object, name: str) -> None:
    assert GeneralConfigTracker._get_model_name(arguments) == name  # type: ignore[arg-type]


def test_settings_and_time_are_noted() -> None:
    tracker = GeneralConfigTracker()
    tracker.log_experiment_args("vllm", "pretrained=a/b/c", "Be brief.", None, True)
    assert (tracker.model_source, tracker.model_name, tracker.model_name_sanitized) == ("vllm", "a/b/c", "b__c")
    assert tracker.system_instruction_sha == hashlib.sha256(b"Be brief.").hexdigest()
    assert tracker.chat_template_sha is None and tracker.fewshot_as_multiturn is True
    tracker.log_end_time()
    assert float(tracker.total_evaluation_time_seconds) == tracker.end_time - tracker.start_time > 0
