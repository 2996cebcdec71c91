"""The page on which people score judged answers: labelled in a browser, saved, and read by ``--human_scores``."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.results.human import plan_labels
from lmms_eval.results.run import load
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.viewer.labels import choices, write_label_page
from tests.cases import for_each
from tests.faults.command import in_process
from tests.servers.stub import StubServer
from tests.viewer.conftest import HOSTILE, Watched, painted, until
from tests.viewer.test_accessibility import AXE, faults

DOCUMENTS, LABELS = 24, 16
JUDGED = """
from pathlib import Path

from lmms_eval.api import Unscored


def doc_to_visual(doc):
    return [str(Path(__file__).parent / name) for name in doc["media"]]


def read(text):
    return int(text) if text.isdigit() else None


def doc_to_judge(doc, results):
    prompt = f"Question: {doc['question']}\\nReference: {doc['answer']}\\nReply: {results[0]}\\nRate it from 0 to 5."
    prompt += f" ANSWER={doc['rating']}"
    return [{"name": "rating", "prompt": prompt, "images": doc_to_visual(doc), "reader": read}]


def process_results(doc, results, verdicts):
    verdict = verdicts.get("rating")
    return {"rating": int(verdict.text) if verdict and verdict.text else Unscored("no judge")}
"""
YAML = """
task: essays
dataset_path: json
dataset_kwargs: {data_files: {test: essays.jsonl}}
test_split: test
doc_to_text: question
doc_to_target: answer
doc_to_visual: !function judged_utils.doc_to_visual
doc_to_judge: !function judged_utils.doc_to_judge
process_results: !function judged_utils.process_results
metric_list:
  - {metric: rating, aggregation: mean, higher_is_better: true, range: [0, 5]}
"""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over pictures whose judge gave 0 to 5. Some texts, names and replies are hostile."""
    folder = tmp_path_factory.mktemp("judged")
    (folder / "judged_utils.py").write_text(JUDGED)
    (folder / "essays.yaml").write_text(YAML)
    rows = []
    for number in range(DOCUMENTS):
        hostile = HOSTILE[number % len(HOSTILE)] if number % 2 else ""
        name = f"<img src=x onerror=alert({number})>.png" if hostile else f"picture{number % 4}.png"
        Image.new("RGB", (900, 600), (60 * (number % 4), 110, 160)).save(folder / name)
        question = f"What does picture {number} show? {hostile}"
        rating = str(number % 6)
        rows.append(
            {"rating": rating, "question": question, "answer": f'"Sea", {number}\n=1+1 {hostile}', "media": [name]}
        )
    (folder / "essays.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with StubServer(key="k") as server:
        ended = in_process(
            "--model", "baseline", "--model_args", "strategy=gold", "--tasks", "essays", "--include_path", folder,
            "--output_path", folder / "out", "--log_samples", "--judge_model", "jury", "--judge_base_url", server.url,
            "--judge_args", "api_key=k",
        )  # fmt: skip
    assert ended.code == 0, ended.shown
    return folder / "out"


@pytest.fixture(scope="module")
def labels(judged: Path) -> Path:
    path = judged.parent / "labels.html"
    ended = in_process(
        "judge", "plan", judged, "--labels", str(LABELS), "--html", path, "--csv", path.with_suffix(".csv")
    )
    assert ended.code == 0, ended.shown
    assert f"{path}: 16 of 24 judged documents of essays" in ended.out
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def saved(page: Any, folder: Path) -> Path:
    with page.expect_download() as started:
        page.click("button.save")
    path = folder / started.value.suggested_filename
    started.value.save_as(path)
    return path


def score_all(page: Any, scores: dict[int, str]) -> None:
    for number in range(LABELS):
        if number in scores:
            page.keyboard.press(scores[number])
        page.keyboard.press("j")


def test_label_save_score(judged: Path, labels: Path, watched: Watched, tmp_path: Path) -> None:
    """Every document gets 5, except for one that nobody can score; the table is that of ``--csv`` with the scores."""
    page = watched.open(labels)
    painted(page)
    score_all(page, {number: "5" for number in range(LABELS) if number != 3})
    until(page, "document.querySelector('[role=status]').textContent.startsWith('15 of 16')")
    path = saved(page, tmp_path)
    assert path.name == "labels_essays.csv"
    planned = rows_of(labels.with_suffix(".csv"))
    assert rows_of(path) == [{**row, "score": "5" if number != 3 else ""} for number, row in enumerate(planned)]
    ended = in_process("score", judged, "--human_scores", path)
    assert ended.code == 0, ended.shown
    assert "judge's rating 2.5000; corrected by 15 human scores of 24 documents, 1 drawn ones without" in ended.out
    (results,) = judged.rglob("*_results.json")
    found = json.loads(results.read_text())["human_scores"]["essays"]
    assert (found["labels"], found["without_score"], found["drawn"]) == (15, 1, "planned")
    assert found["corrected"] == pytest.approx(5, abs=0.2) and found["agreement"]["bias"] < -2


def test_scores_are_given_without_the_judge_s(labels: Path, watched: Watched) -> None:
    page = watched.open(labels)
    painted(page)
    opinions = [one["score"] for one in content(labels)["samples"]]
    assert page.query_selector("#opinion") is None and page.is_disabled("button.see")
    page.keyboard.press("s")
    page.keyboard.press("2")
    page.click("button.see")
    assert page.inner_text("#opinion p b") == str(int(opinions[0]))
    assert "rating" in page.inner_text("#opinion .judgement h3")
    page.keyboard.press("4")
    page.keyboard.press("x")
    assert page.input_value(".rate input") == "2" and page.is_disabled(".rate input")
    page.keyboard.press("j")
    until(page, "document.querySelector('#opinion') === null")
    page.click("summary:text-is('What the judge was asked')")
    question = page.inner_text("details .judgement")
    assert "Rate it from 0 to 5." in question and "Reply\n" not in question


def test_scores_are_kept_and_may_be_typed(labels: Path, watched: Watched) -> None:
    page = watched.open(labels)
    painted(page)
    for key, typed in (("e", "9"), ("e", "2.5")):
        page.keyboard.press(key)
        page.keyboard.press("Control+a")
        page.keyboard.type(typed)
        page.keyboard.press("Enter")
        painted(page)
        wrong = page.query_selector(".rate [role=alert]")
        assert (wrong and wrong.inner_text()) == ("A score is a number from 0 to 5." if typed == "9" else None)
    page.keyboard.press("n")
    page.keyboard.press("0")
    page.keyboard.press("x")
    page.keyboard.press("1")
    page.reload()
    page.wait_for_selector("h1")
    painted(page)
    assert page.inner_text("[role=status]").startswith("2 of 16")
    assert page.inner_text(".steps .quiet") == "2 of 16", "the page opens at the last answer"
    assert page.get_attribute(".rate button:text-is('1')", "aria-pressed") == "true"
    page.keyboard.press("k")
    until(page, "document.querySelector('.rate input').value === '2.5'")
    assert page.evaluate("document.activeElement.id") == "content"


def content(path: Path) -> dict[str, Any]:
    text = path.read_text("utf-8").partition('id="chunk-labels">')[2].partition("</script>")[0]
    found: dict[str, Any] = json.loads(text)
    return found


def test_the_page_holds_each_picture_once_and_only_text(labels: Path, watched: Watched) -> None:
    found = content(labels)
    assert (found["low"], found["high"], found["choices"]) == (0, 5, [0, 1, 2, 3, 4, 5])
    assert all(one["made"] == {"judge/0/0": 0} for one in found["samples"])
    assert "rating" not in json.dumps([one["lines"] for one in found["samples"]])
    page = watched.open(labels)
    painted(page)
    for _ in range(LABELS):
        assert page.query_selector_all("#app :is(script, iframe, style, a[href^=java], [onerror], [onload])") == []
        assert page.evaluate(
            "[...document.querySelectorAll('#app img')].every(one => one.src.startsWith('data:image/'))"
        )
        page.keyboard.press("j")
        painted(page)


@pytest.mark.parametrize("look", ["light", "dark", "narrow"])
def test_the_page_is_accessible(labels: Path, chromium: Any, look: str) -> None:
    if not AXE.is_file():
        pytest.skip("accessibility is checked by axe-core, which `make viewer` installs")
    width, colours = (400 if look == "narrow" else 1280), ("dark" if look == "dark" else "light")
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=colours)
    page = context.new_page()
    page.goto(labels.resolve().as_uri())
    page.wait_for_selector("h1")
    painted(page)
    assert faults(page) == []
    page.keyboard.press("3")
    page.keyboard.press("s")
    page.wait_for_selector("#opinion")
    page.keyboard.press("?")
    painted(page)
    assert faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    context.close()


@for_each(
    ("scale", "scores", "shown"),
    [
        (ScoreRange(0, 1), [0.0, 1.0], [0, 1]),
        (ScoreRange(0, 1), [0.0, 0.5], [0, 0.5, 1]),
        (ScoreRange(0, 1), [0.1, 0.8], [round(number / 10, 1) for number in range(11)]),
        (ScoreRange(0, 10), [0.0, 10.0], list(range(11))),
        (ScoreRange(1, 5), [2.0], [1, 2, 3, 4, 5]),
        (ScoreRange(0, 100), [7.0, 31.0], []),
        (ScoreRange(0, 1), [0.123], []),
        (ScoreRange(3, 3), [3.0], [3]),
    ],
)
def test_buttons(scale: ScoreRange, scores: list[float], shown: list[float]) -> None:
    assert choices(scale, scores) == shown


def test_bad_pages(judged: Path, labels: Path, tmp_path: Path) -> None:
    run = load(judged)
    plan = plan_labels(run, LABELS)
    with pytest.raises(UsageError, match="may hold scores"):
        write_label_page(plan, run, labels)
    with pytest.raises(LmmsEvalError, match="cannot write"):
        write_label_page(plan, run, labels / "labels.html")
    ended = in_process("judge", "plan", judged, "--labels", "9", "--html", tmp_path / "labels.txt")
    assert ended.code == 2 and "end the name with .html" in ended.err
    (judged.parent / "picture0.png").rename(tmp_path / "moved.png")
    assert write_label_page(plan, run, tmp_path / "without.html").missing_media
    (tmp_path / "moved.png").rename(judged.parent / "picture0.png")
