"""Tests of ``lmms_eval.tasks.lm_eval.exchanges``."""

from __future__ import annotations

from pathlib import Path

from lmms_eval.api.task import TaskOptions
from tests.tasks.kit import Function
from tests.tasks.lm_eval.kit import CHOSEN, asked, opened, turns


def test_requests_without_context_come_last_and_have_nothing_but_the_choice(tmp_path: Path) -> None:
    options = TaskOptions(system_instruction="Be brief.", apply_chat_template=True)
    task = opened(tmp_path, {**CHOSEN, "metric_list": [{"metric": "acc_mutual_info"}]}, options=options)
    requests = asked(task)
    assert [request.index for request in requests] == [0, 1, 2, 3]
    assert [request.continuation for request in requests] == ["red", "blue", "red", "blue"]
    assert turns(requests[1]) == [("system", "Be brief."), ("user", "sky?")]
    assert turns(requests[2]) == [("user", "")] and requests[2].build_messages().is_plain


def test_the_delimiter_precedes_a_choice_except_after_a_chat_template(tmp_path: Path) -> None:
    plain = opened(tmp_path / "a", {**CHOSEN, "target_delimiter": "\n"})
    assert [request.continuation for request in asked(plain)] == ["\nred", "\nblue"]
    chat = opened(tmp_path / "b", {**CHOSEN, "target_delimiter": "\n"}, options=TaskOptions(apply_chat_template=True))
    assert [request.continuation_after(has_template=True) for request in asked(chat)] == ["red", "blue"]
    rows = [{"q": "sky", "options": [" red", " blue"], "label": 1}]
    spaced = opened(tmp_path / "c", CHOSEN, options=TaskOptions(apply_chat_template=True), rows=rows)
    assert [request.continuation_after(has_template=True) for request in asked(spaced)] == [" red", " blue"]


def test_a_likelihood_has_no_delimiter(tmp_path: Path) -> None:
    changes = {"output_type": "loglikelihood", "doc_to_target": " {{a}}", "metric_list": None}
    (request,) = asked(opened(tmp_path, changes))
    assert (request.kind, request.context, request.continuation) == ("loglikelihood", "sky?", " blue")


def test_a_rolling_request_is_the_whole_text_without_examples(tmp_path: Path) -> None:
    changes = {
        "output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{q}} is {{a}}",
        "metric_list": None,
    }  # fmt: skip
    task = opened(tmp_path, changes, options=TaskOptions(num_fewshot=2, system_instruction="Be brief."))
    (request,) = asked(task)
    assert (request.kind, request.context, request.continuation) == ("loglikelihood_rolling", "", "sky is blue")
    assert turns(request) == [("user", "")]


def test_choices_share_a_rendered_prompt_and_no_objects(tmp_path: Path) -> None:
    code = "calls = []\n\n\ndef text(doc):\n    calls.append(doc['q'])\n    return f\"{doc['q']} {len(calls)}\"\n"
    task = opened(tmp_path, {**CHOSEN, "doc_to_text": Function("utils.text")}, code)
    first, second = (request.build_messages() for request in asked(task))
    assert first == second and first.messages[0] is not second.messages[0]
    first.messages[0].content.clear()
    assert second.messages[0].content and asked(task)[0].build_messages().messages[0].content
