from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lmms_eval.api.model import RequestStream
from lmms_eval.api.request import Request, Response
from lmms_eval.errors import ConfigError, UsageError
from lmms_eval.evaluation.preview.run import dry_run
from lmms_eval.evaluation.rescore import rescore
from lmms_eval.evaluation.writing import RunReport
from tests.cases import for_each
from tests.evaluation import kit
from tests.evaluation.test_controls import Chat, Looker, Simple, evaluated, picture_task

TERSE = {"name": "terse", "post_prompt": "\nOne letter."}
EXPERT = {"name": "expert", "system_prompt": "You know colours."}
POLITE = {"name": "polite", "pre_prompt": "Please look. "}
THREE = [TERSE, EXPERT, POLITE]


def asked_with(tmp: Path, model: Any, variants: Any, **over: Any) -> RunReport:
    file = tmp / "variants.yaml"
    file.write_text(yaml.safe_dump(variants))
    return evaluated(tmp, model, prompt_variants=str(file), **over)


class Moody(Looker):
    """Right, except about odd documents if the prompt ends with an instruction."""

    def _answer(self, request: Request) -> str:
        right = super()._answer(request)
        return "none" if "One letter." in request.context and request.doc_id % 2 else right


def test_every_document_is_asked_with_every_prompt(tmp_path: Path) -> None:
    picture_task(tmp_path)
    model = Moody()
    report = asked_with(tmp_path, model, THREE)
    assert report.exit_code == 0
    assert len(model.asked) == len(set(model.asked)) == 4 * 8
    own = "<image>colour 1?\nA. red\nB. green\nC. blue\nD. white"
    assert model.seen["probe/1/0/0/0"][1] == own
    assert model.seen["probe@terse/1/0/0/0"][1] == f"{own}\nOne letter."
    assert model.seen["probe@polite/1/0/0/0"][1] == f"Please look. {own}"
    system, picture, text = model.seen["probe@expert/1/0/0/0"]
    assert (system, picture.size, text) == ("You know colours.", (9, 6), own)
    part = report.results["prompt_variants"]["probe"]
    assert list(part["variants"]) == ["as given", "terse", "expert", "polite"]
    assert part["variants"]["terse"]["changes"] == {"post_prompt": "\nOne letter."}
    found = part["metrics"]["acc,none"]
    assert {name: one["score"] for name, one in found["scores"].items()} == {
        "as given": 1.0, "terse": 0.5, "expert": 1.0, "polite": 1.0,
    }  # fmt: skip
    assert (found["n"], found["missing"], found["mean"]) == (8, 0, 0.875)
    assert found["spread"] == {"sd": 0.25, "lowest": "terse", "highest": "polite"}
    assert found["like_these"]["low"] < found["these"]["low"] < 0.875 < found["these"]["high"] <= 1
    (line,) = (line for line in report.lines if "over 4 prompts" in line)
    assert line.startswith("probe: acc over 4 prompts: mean 0.8750, CI95 [")
    assert "from 0.5000 (terse) to 1.0000 (polite)" in line
    assert "- terse" in report.table and "Gap" not in report.table
    (samples,) = (tmp_path / "out").rglob("*_samples_probe@terse.jsonl")
    assert [json.loads(row)["acc"] for row in samples.read_text().splitlines()] == [1.0, 0.0] * 4
    assert report.results["configs"]["probe@terse"]["control"]["changes"] == {"post_prompt": "\nOne letter."}


def test_the_tasks_own_prompt_may_be_left_out(tmp_path: Path) -> None:
    picture_task(tmp_path)
    report = asked_with(tmp_path, Moody(), {"own": False, "variants": [TERSE, EXPERT]})
    part = report.results["prompt_variants"]["probe"]
    assert list(part["variants"]) == ["terse", "expert"]
    found = part["metrics"]["acc,none"]
    assert found["mean"] == 0.75 and found["like_these"]["reason"] == "fewer than 3 prompts"
    assert report.results["results"]["probe"]["acc,none"] == 1.0


def test_settings_of_the_task_are_replaced_if_its_prompts_show_them(tmp_path: Path) -> None:
    code = """
def doc_to_text(doc, lmms_eval_specific_kwargs):
    return f"{doc['question']}{lmms_eval_specific_kwargs['post_prompt']}"
"""
    folder = picture_task(
        tmp_path, documents=2, lmms_eval_specific_kwargs={"default": {"pre_prompt": "unseen", "post_prompt": " Say."}}
    )
    (folder / "utils.py").write_text(
        re.sub(r"(?s)def doc_to_text.*?\n\n\n", code + "\n\n", (folder / "utils.py").read_text())
    )
    model = Looker()
    asked_with(tmp_path, model, [{"name": "both", "pre_prompt": "First. ", "post_prompt": " Think."}])
    assert model.seen["probe/1/0/0/0"][1] == "colour 1? Say."
    assert model.seen["probe@both/1/0/0/0"][1] == "First. colour 1? Think."


class Numbered(Looker):
    """Answers with the label of the line that has the colour."""

    def _answer(self, request: Request) -> str:
        letter = super()._answer(request)
        if not request.id.startswith("probe@numbers"):
            return letter
        (text,) = (part for part in self.seen[request.id] if isinstance(part, str))
        lines = dict(line.split(". ") for line in text.splitlines() if line[1:2] == ".")
        return f"The answer is {next(label for label in lines if int(label) == 1 + request.doc_id % 4)}."


@pytest.mark.parametrize("scoring", ["inline", "process"])
def test_labels_change_in_the_prompt_and_back_in_the_answer(tmp_path: Path, scoring: str) -> None:
    folder = picture_task(tmp_path, documents=4, scoring=scoring)
    code = (folder / "utils.py").read_text()
    (folder / "utils.py").write_text(code.replace("results[0] ==", "results[0].removeprefix('The answer is ')[0] =="))
    model = Numbered()
    variants = [{"name": "numbers", "option_labels": [1, 2, 3, 4]}]
    report = asked_with(tmp_path, model, variants, score_workers=1)
    assert model.seen["probe@numbers/1/0/0/0"][1] == "<image>colour 1?\n1. red\n2. green\n3. blue\n4. white"
    assert report.results["results"]["probe@numbers"]["acc,none"] == 1.0


@pytest.mark.parametrize("most", [3, 17])
def test_a_run_that_was_killed_continues(tmp_path: Path, most: int) -> None:
    picture_task(tmp_path)
    first, second = Looker(most), Looker()
    with pytest.raises(Exception, match="killed"):
        asked_with(tmp_path, first, THREE)
    report = asked_with(tmp_path, second, THREE)
    assert not set(first.asked) & set(second.asked)
    assert len(first.asked) + len(second.asked) == 32
    assert report.results["prompt_variants"]["probe"]["metrics"]["acc,none"]["n"] == 8


def test_other_variants_are_another_run(tmp_path: Path) -> None:
    picture_task(tmp_path, documents=4)
    asked_with(tmp_path, Looker(), [TERSE])
    model = Looker()
    asked_with(tmp_path, model, [{**TERSE, "post_prompt": "\nOther."}], resume=True)
    assert {name.partition("/")[0] for name in model.asked} == {"probe", "probe@terse"}
    assert len(kit.run_folders(tmp_path / "out")) == 2
    again = Looker()
    asked_with(tmp_path, again, [TERSE], resume=True)
    assert not again.asked


def test_a_recorded_run_is_scored_again_without_the_file(tmp_path: Path) -> None:
    picture_task(tmp_path, documents=4)
    first = asked_with(tmp_path, Moody(), THREE)
    (tmp_path / "variants.yaml").unlink()
    (folder,) = kit.run_folders(tmp_path / "out")
    report = rescore(folder, {}, ends=False)
    assert report.results["prompt_variants"] == first.results["prompt_variants"]


def test_limits_controls_and_repeats_go_along(tmp_path: Path) -> None:
    picture_task(tmp_path)
    model = Looker()
    report = asked_with(tmp_path, model, [TERSE, POLITE], limit=4, ablate="no-media", repeats=2, permute_choices=2)
    tasks = ["probe", "probe@no-media", "probe@rotation-1", "probe@terse", "probe@polite"]
    assert list(dict.fromkeys(name.partition("/")[0] for name in sorted(model.asked))) == sorted(tasks)
    assert len(model.asked) == 5 * 4 * 2
    assert set(report.results["controls"]["probe"]) == {"chance", "no-media", "rotations"}
    assert report.results["prompt_variants"]["probe"]["metrics"]["acc,none"]["n"] == 4


def test_documents_without_a_number_leave_bounds(tmp_path: Path) -> None:
    picture_task(tmp_path)

    class Failing(Looker):
        def respond(self, stream: RequestStream) -> Iterator[Response]:
            while requests := stream.take(1):
                (request,) = requests
                if request.id.startswith("probe@terse/3/"):
                    yield Response.failure(request.id, "timeout", "no answer")
                else:
                    yield Response(request.id, text=self._answer(request))

    report = asked_with(tmp_path, Failing(), THREE, error_budget=0.5)
    found = report.results["prompt_variants"]["probe"]["metrics"]["acc,none"]
    assert (found["n"], found["missing"]) == (7, 1)
    bounds = found["missing_bounds"]
    assert bounds["low"] < found["these"]["low"] and bounds["high"] == 1.0
    (line,) = (line for line in report.lines if "over 4 prompts" in line)
    assert "over the 7 documents that have a number with all of them" in line
    assert "whatever the others would score" in line


def test_a_dry_run_counts_every_prompt_once(tmp_path: Path) -> None:
    picture_task(tmp_path, documents=4)
    (tmp_path / "v.yaml").write_text(yaml.safe_dump(THREE))
    config = kit.config(
        tmp_path, tasks="probe", prompt_variants=str(tmp_path / "v.yaml"), ablate="no-media", dry_run=True
    )
    lines, code = dry_run(config)
    assert code == 0
    assert [line for line in lines if line.startswith("Total: 20 requests")]
    assert sum(line.startswith("probe@no-media: 4 of 4 documents") for line in lines) == 1


@pytest.mark.parametrize("plugin", [Simple, Chat])
def test_class_plugins_are_asked_with_the_variants(tmp_path: Path, plugin: type[Simple]) -> None:
    picture_task(tmp_path, documents=2)
    model = plugin()
    report = asked_with(tmp_path, model, [TERSE])
    assert report.exit_code == 0
    own = "<image>colour 1?\nA. red\nB. green\nC. blue\nD. white"
    assert [model.shown[task, 1][0] for task in ("probe", "probe@terse")] == [own, f"{own}\nOne letter."]


@for_each(
    "variants, said",
    [
        ([{"name": "a", "option_labels": [1, 2]}], "option_labels has 2 labels, but a document of task 'probe' has 4"),
        ([TERSE, {**TERSE, "name": "brief"}], "variant 'brief' gives the same prompts as variant 'terse'"),
        ([{"name": "same", "pre_prompt": ""}], "variant 'same' gives the same prompts as the task's own prompt"),
    ],
)
def test_variants_that_cannot_be_asked_are_refused(tmp_path: Path, variants: Any, said: str) -> None:
    picture_task(tmp_path)
    with pytest.raises(UsageError, match=said):
        asked_with(tmp_path, Looker(), variants)


def test_tasks_that_cannot_have_variants_are_refused(tmp_path: Path) -> None:
    picture_task(tmp_path)
    kit.tasks(tmp_path)
    labels = [{"name": "numbers", "option_labels": [1, 2, 3, 4]}]
    with pytest.raises(UsageError, match=f"task '{kit.NAME}' shows no options in lines"):
        asked_with(tmp_path, Looker(), labels, tasks=kit.NAME)
    picture_task(tmp_path, output_type="generate_until_multi_round")
    with pytest.raises(UsageError, match="asks in several requests"):
        asked_with(tmp_path, Looker(), [TERSE])
    likely = {"output_type": "multiple_choice", "doc_to_choice": "options", "doc_to_target": "answer"}
    picture_task(tmp_path, **likely, process_results=None, metric_list=None)
    with pytest.raises(UsageError, match="compares the likelihoods of its choices"):
        asked_with(tmp_path, Looker(), labels)


def test_rules_and_predictions_do_not_go_along(tmp_path: Path) -> None:
    picture_task(tmp_path)
    with pytest.raises(ConfigError, match="--prompt_variants does not go with --until"):
        asked_with(tmp_path, Looker(), THREE, until="halfwidth<=0.2")
    with pytest.raises(ConfigError, match="--prompt_variants does not go with --predict_only"):
        asked_with(tmp_path, Looker(), THREE, predict_only=True)


def test_labels_after_thoughts_are_read(tmp_path: Path) -> None:
    picture_task(tmp_path, documents=4)

    class Thinking(Looker):
        def _answer(self, request: Request) -> str:
            letter = super()._answer(request)
            if "@" not in request.id:
                return f"<think>maybe A</think>{letter}"
            return f"<think>The answer is 9, or option 1</think>{1 + request.doc_id % 4}"

    report = asked_with(tmp_path, Thinking(), [{"name": "numbers", "option_labels": [1, 2, 3, 4]}])
    found = report.results["prompt_variants"]["probe"]["metrics"]["acc,none"]
    assert {name: one["score"] for name, one in found["scores"].items()} == {"as given": 1.0, "numbers": 1.0}
    (samples,) = (tmp_path / "out").rglob("*_samples_probe@numbers.jsonl")
    assert [json.loads(row)["filtered_resps"] for row in samples.read_text().splitlines()] == list("ABCD")
