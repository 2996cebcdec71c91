from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.errors import DataError, JournalError
from lmms_eval.tasks.general_bench import scoring
from lmms_eval.tasks.general_bench.facts import find_task, tasks
from lmms_eval.tasks.general_bench.settings import Settings
from lmms_eval.tasks.general_bench.standalone import FolderJob, FolderScores, score_folders
from lmms_eval.tasks.general_bench.summary import TaskScore
from tests.cases import for_each
from tests.tasks.general_bench.data.kit import write_task
from tests.tasks.general_bench.demo_kit import DEMO, SET, copied, edit

DEFECTS = "nlp/Defects"
RAIN = "image/generation/Deraining"
NAME = "prediction.json"
RIGHT, WRONG = ("0", "1"), ("1", "0")
"""Predictions of defects by target."""
TARGETS = [
    item["output"]["target"] for item in json.loads((DEMO / SET / DEFECTS / "annotation.json").read_text())["data"]
]


def job(root: Path, journal: Path | None = None, **over: Any) -> FolderJob:
    options = {key: over.pop(key) for key in list(over) if key not in ("ask", "judge", "name")}
    name = over.pop("name", NAME)
    return FolderJob(Settings.of({"data_root": str(root), **options}), name, journal, **over)


def write(folder: Path, *predictions: Any, ids: Sequence[Any] = ("q0", "q1", "q2")) -> Path:
    records = [{"id": one, "prediction": value} for one, value in zip(ids, predictions, strict=False)]
    (folder / NAME).write_text(json.dumps(records))
    return folder / NAME


def defects(tmp: Path, *predictions: Any) -> Path:
    root = copied(tmp / "data", DEFECTS)
    write(root / SET / DEFECTS, *predictions)
    return root


def only(found: FolderScores) -> TaskScore:
    (score,) = found.scores
    return score


class Scored:
    """Counts the items that are scored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ids: list[Any] = []
        original = scoring.score_item

        def counted(item: Any, *further: Any) -> Any:
            self.ids.append(item.id)
            return original(item, *further)

        monkeypatch.setattr(scoring, "score_item", counted)

    def again(self) -> list[Any]:
        """Since the last call."""
        found, self.ids = self.ids, []
        return found


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> Scored:
    return Scored(monkeypatch)


# --- what is scored


def test_the_demonstration_has_files_of_seven_tasks() -> None:
    told: list[str] = []
    found = score_folders(job(DEMO), progress=lambda score: told.append(score.task))
    assert told == [score.task for score in found.scores]
    assert len(told) == 7 and not found.problems
    assert {score.status for score in found.scores} == {"scored"}
    assert len(found.without) == 38
    order = {facts.id: place for place, facts in enumerate(tasks())}
    assert told == sorted(told, key=order.__getitem__)


def test_only_the_tasks_that_are_wanted() -> None:
    found = score_folders(job(DEMO), lambda facts: facts.modality == "Video")
    assert {score.facts.modality for score in found.scores} == {"Video"}
    assert {facts.modality for facts in found.without} == {"Video"}


@for_each(
    ("predictions", "strict", "official", "answered"),
    [
        ((RIGHT, RIGHT, RIGHT), 100.0, 100.0, 3),
        ((WRONG, RIGHT, RIGHT), 200 / 3, 200 / 3, 3),
        ((RIGHT, RIGHT), 200 / 3, 100.0, 2),
        ((RIGHT, None, ["0"]), 100 / 3, 100.0, 1),
        ((), 0.0, None, 0),
    ],
)
def test_predictions_that_are_missing_or_of_another_form_count_as_wrong(
    tmp_path: Path, predictions: tuple[Any, ...], strict: float, official: float | None, answered: int
) -> None:
    given = [one[target] if isinstance(one, tuple) else one for one, target in zip(predictions, TARGETS, strict=False)]
    found = only(score_folders(job(defects(tmp_path, *given))))
    assert found.strict == pytest.approx(strict)
    assert found.official == (official if official is None else pytest.approx(official))
    assert (found.answered, found.expected) == (answered, 3)


def test_ids_are_matched_with_their_type_and_the_last_record_counts(tmp_path: Path) -> None:
    root = copied(tmp_path, RAIN)
    folder = root / SET / RAIN
    records = [
        {"id": "0", "prediction": "made/0.png"}, {"id": 1.0, "prediction": "made/1.png"},
        {"id": 2, "prediction": "nothing.png"}, {"id": 2, "prediction": "made/2.png"}, {"id": 9, "prediction": "x"}, 7,
    ]  # fmt: skip
    (folder / NAME).write_text(json.dumps({"task": "t", "data": records}))
    found = score_folders(job(root))
    assert (only(found).answered, only(found).expected) == (2, 3)
    assert any("more than once" in problem for problem in found.problems)
    assert any("record 5 is passed over" in problem for problem in found.problems)


@for_each(
    ("content", "says"),
    [
        (b'[{"id": 1, "predic', "no complete JSON"),
        (b'"text"', "a list of {id, prediction}"),
        (b'{"data": 5}', "a list of {id, prediction}"),
        (b'[{"model": "m", "task": "t", "metric": "ACC", "score": "0.5"}]', "holds results"),
        (b"", "no complete JSON"),
    ],
)
def test_a_damaged_file_is_the_failure_of_its_task(tmp_path: Path, content: bytes, says: str) -> None:
    root = copied(tmp_path, DEFECTS, RAIN)
    (root / SET / DEFECTS / NAME).write_bytes(content)
    language, picture = score_folders(job(root)).scores
    assert (language.status, picture.status) == ("failed", "scored")
    assert says in language.withheld and str(root / SET / DEFECTS / NAME) in language.withheld


def test_items_that_cannot_be_read_withhold_the_score(tmp_path: Path) -> None:
    root = defects(tmp_path, "0", "1", "0")
    edit(root / SET / DEFECTS / "annotation.json", lambda content: content["data"].append("no object"))
    found = only(score_folders(job(root)))
    assert (found.status, found.failed, found.expected, found.strict) == ("failed", 1, 4, None)
    edit(root / SET / DEFECTS / "annotation.json", lambda content: content.update(data=["no object"]))
    assert only(score_folders(job(root))).status == "failed"
    edit(root / SET / DEFECTS / "annotation.json", lambda content: content.update(data=[]))
    assert "no items in it" in only(score_folders(job(root))).withheld


def test_a_schema_that_is_not_known_is_not_evaluated(tmp_path: Path) -> None:
    folder = "image/comprehension/Captioning"
    root = copied(tmp_path, folder)

    def rename(content: Any) -> None:
        for entry in content["data"]:
            entry["output"] = {"words": "x"}

    edit(root / SET / folder / "annotation.json", rename)
    write(root / SET / folder, "a", "b", "c", ids=(0, 1, 2))
    found = only(score_folders(job(root)))
    assert (found.status, found.expected) == ("not evaluated", 3)
    assert found.withheld.startswith("not evaluated: ") and found.withheld.count("not evaluated") == 1


def test_what_a_measure_needs_may_be_absent(tmp_path: Path) -> None:
    facts = find_task("Edge-to-Image Generation")
    folder = tmp_path / SET / "image" / "generation" / "Edge"
    (folder / "images").mkdir(parents=True)
    for file in (DEMO / SET / RAIN / "images").glob("clean*.png"):
        (folder / "images" / file.name).write_bytes(file.read_bytes())
    raw = [{"id": n, "input": {"prompt": "x"}, "output": {"image_file": f"images/clean{n}.png"}} for n in range(2)]
    write_task(folder, facts.name, raw)
    write(folder, "images/clean0.png", "images/clean1.png", ids=(0, 1))
    found = only(score_folders(job(tmp_path)))
    assert (found.status, found.strict) == ("not evaluated", None)
    assert "weights" in found.withheld


def test_closed_sets_have_no_score(tmp_path: Path) -> None:
    folder = tmp_path / "General-Bench-Closeset" / "nlp" / "D"
    write_task(folder, "Code Defect Detection", [{"id": "q0", "func": "f()"}], type="Code Defect Detection")
    write(folder, "0")
    found = only(score_folders(job(tmp_path, subset="closed")))
    assert found.status == "not evaluated" and "closed set" in found.withheld


def test_folders_of_no_task_and_no_folder(tmp_path: Path) -> None:
    root = defects(tmp_path, "0", "1", "0")
    write_task(root / SET / "nlp" / "Odd", "Basket Weaving", [{"id": 1}])
    found = score_folders(job(root))
    assert only(found).status == "scored"
    assert any("Basket Weaving" in problem for problem in found.problems)
    with pytest.raises(DataError, match="no such folder"):
        score_folders(job(tmp_path / "nothing"))


# --- what is kept


def test_nothing_is_scored_twice(tmp_path: Path, scored: Scored) -> None:
    root = defects(tmp_path, "0", "1")
    first = score_folders(job(root, tmp_path / "kept"))
    assert scored.again() == ["q0", "q1", "q2"]
    assert score_folders(job(root, tmp_path / "kept")) == first
    assert scored.again() == []
    assert score_folders(job(root)) == first
    assert scored.again() == ["q0", "q1", "q2"]


def test_what_changes_is_scored_again(tmp_path: Path, scored: Scored) -> None:
    root = defects(tmp_path, "0", "1", "0")
    kept = tmp_path / "kept"
    score_folders(job(root, kept))
    scored.again()
    write(root / SET / DEFECTS, "0", "other", "0")
    assert only(score_folders(job(root, kept))).strict < 100.0  # type: ignore[operator]
    assert scored.again() == ["q1"]
    edit(root / SET / DEFECTS / "annotation.json", lambda content: content["data"][2].update(func="g()"))
    score_folders(job(root, kept))
    assert scored.again() == ["q2"]


def test_a_changed_predicted_picture_is_scored_again(tmp_path: Path, scored: Scored) -> None:
    root, kept = copied(tmp_path / "data", RAIN), tmp_path / "kept"
    folder = root / SET / RAIN
    before = only(score_folders(job(root, kept)))
    scored.again()
    (folder / "made" / "1.png").write_bytes((folder / "images" / "wet1.png").read_bytes())
    after = only(score_folders(job(root, kept)))
    assert scored.again() == [1]
    assert after.strict is not None and before.strict is not None and after.strict < before.strict
    (folder / "made" / "1.png").unlink()
    assert only(score_folders(job(root, kept))).answered == 2
    assert scored.again() == [1]


def test_failures_are_tried_again(tmp_path: Path, scored: Scored) -> None:
    root, kept = copied(tmp_path / "data", RAIN), tmp_path / "kept"
    reference = root / SET / RAIN / "images" / "clean1.png"
    content = reference.read_bytes()
    reference.unlink()
    broken = only(score_folders(job(root, kept)))
    assert broken.status == "failed" and "clean1.png" in broken.withheld
    assert scored.again() == [0, 1, 2]
    assert only(score_folders(job(root, kept))).status == "failed"
    assert scored.again() == [1]
    reference.write_bytes(content)
    mended = only(score_folders(job(root, kept)))
    assert scored.again() == [1]
    assert mended == only(score_folders(job(root)))


@pytest.mark.parametrize("cut", [2, 30, 200])
def test_a_torn_journal_gives_the_same_result(tmp_path: Path, scored: Scored, cut: int) -> None:
    root, kept = copied(tmp_path / "data", RAIN), tmp_path / "kept"
    whole = score_folders(job(root, kept))
    scored.again()
    (file,) = kept.iterdir()
    file.write_bytes(file.read_bytes()[:-cut])
    assert score_folders(job(root, kept)) == whole
    assert 1 <= len(scored.again()) <= 2
    assert score_folders(job(root, kept)) == whole
    assert scored.again() == []


def test_a_journal_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    root = defects(tmp_path, "0", "1", "0")
    (tmp_path / "kept").write_text("a file")
    with pytest.raises(JournalError, match="kept"):
        score_folders(job(root, tmp_path / "kept"))


# --- the judged metric


class Jury:
    """Says that each answer is right."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, questions: Sequence[JudgeQuestion]) -> list[Verdict]:
        self.asked.append(len(questions))
        return [Verdict(question.name, "1", accepted=True, model="jury") for question in questions]


def test_the_judge_is_asked_once_for_each_answer(tmp_path: Path) -> None:
    facts = find_task("Open-ended Audio Question Answering")
    folder = tmp_path / SET / "audio" / "comprehension" / "Open"
    raw = [{"id": n, "input": {"audio_file": "a.wav", "prompt": "?"}, "output": {"text": "dog"}} for n in range(3)]
    write_task(folder, facts.name, raw)
    write(folder, "a dog", "a cat", ids=(0, 1))
    jury, kept = Jury(), tmp_path / "kept"
    absent = only(score_folders(job(tmp_path, kept)))
    assert absent.status == "not evaluated" and "--judge_model" in absent.withheld
    for _ in range(2):
        found = only(score_folders(job(tmp_path, kept, ask=jury, judge="one")))
        assert found.official == 100.0
        assert found.strict == pytest.approx(200 / 3)
    assert jury.asked[0] == 2 and sum(jury.asked) == 2
    score_folders(job(tmp_path, kept, ask=jury, judge="another"))
    assert sum(jury.asked) == 4
