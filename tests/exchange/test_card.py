from __future__ import annotations

import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from lmms_eval.cli.main import main
from lmms_eval.exchange.card import NO_CONTROLS, NO_RECIPE, card_of
from lmms_eval.exchange.checklists import FINDERS, ITEMS, NIST, STREAM
from lmms_eval.results import load
from tests.results.runs import document, write_record, write_run
from tests.results.test_runs_of_1_0_0 import ARCHIVE
from tests.viewer.conftest import HOSTILE

WHOLE: dict[str, Any] = {
    "intervals": {
        "quiz": {"acc,none": {"low": 0.1, "high": 0.9, "method": "wilson", "estimand": "generalised accuracy"}}
    },
    "prompt_fingerprint": "f" * 64,
    "effective_requests": {"quiz": {"sha256": "a" * 64, "options": {"temperature": 0.5}}},
    "judge": {"model": "jury", "provider": "openai", "questions": 3, "answered": 3, "by_task": {"quiz": {}}},
    "judge_texts": {"quiz": {"mmvet_judge": {"fingerprint": "abcdef", "source": "built-in", "authors": False}}},
    "machine": {"platform": "Linux", "cpus": 8, "gpus": ["H200"]},
    "library_versions": {"lmms_eval": "1.0.0", "python": "3.11"},
    "usage": {"total": {"input_tokens": 1000, "output_tokens": 20}, "cost": {"total": 1.5, "currency": "EUR"}},
    "task_hashes": {"quiz": "b" * 64},
    "n-samples": {"quiz": {"original": 9, "effective": 4}},
}

TAGS = set(re.findall(r"\w+", "h1 h2 h3 p main dl dt dd bdi div table thead tbody tr th td"))


def cards(source: Path, about: dict[str, str] | None = None) -> tuple[str, str]:
    card = card_of(load(source), about or {})
    return card.markdown(), card.html()


def test_a_card_states_what_the_run_does(tmp_path: Path) -> None:
    for card in cards(write_run(tmp_path / "run", results=document(**WHOLE))):
        plain = card.replace("\\", "")
        for text in (
            "[0.1000, 0.9000]", "questions like these", "jury", "mmvet_judge abcdef", "temperature 0.5", "1.5 EUR",
            "GPUs H200", "4 of 9", "f" * 64, "a" * 64, NO_RECIPE, "1 failed",
        ):  # fmt: skip
            assert text in plain, text
        assert NO_CONTROLS.split(" (")[0] in plain


def test_a_recipe_is_shown(tmp_path: Path) -> None:
    recipe = {"name": "qwen3vl-report", "differs": {"quiz": {"temperature": 0}}}
    published = {"quiz": [{"metric": "acc,none", "published": 51.2, "source": "its report", "shown": "agrees"}]}
    markdown, html = cards(write_run(tmp_path / "run", results=document(recipe=recipe, published=published)))
    for card in (markdown, html):
        assert "51.2" in card and "its report" in card and "agrees" in card
        assert "qwen3vl-report" in card and NO_RECIPE not in card


def test_every_item_of_the_checklists_is_filled_or_absent(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", results=document(**WHOLE))
    markdown, html = cards(run, {"threat": "Birds | steal bread."})
    for item in ITEMS:
        assert item.text in html.replace("&#x27;", "'"), item
    assert {item.list for item in ITEMS} == {NIST, STREAM}
    assert {item.key for item in ITEMS} >= FINDERS.keys()
    for name in (NIST, STREAM):
        counts = re.search(
            rf"Checklist: {re.escape(name)}</h2>\n<p.*?>Of (\d+) items (\d+) .*?, (\d+) .*?, (\d+) ", html
        )
        assert counts is not None
        total, filled, partly, absent = map(int, counts.groups())
        assert total == filled + partly + absent == sum(item.list == name for item in ITEMS)
    assert "Birds | steal bread. (stated by people)" in html
    assert "(--about, thresholds)" in markdown.replace("\\", "")


def test_controls_are_a_table(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    markdown, html = cards(tmp_path / "controls")
    assert "Asked again without its pictures, videos and sounds." in markdown
    assert html.count("<td><bdi>no-media</bdi></td>") == 4
    for name in ("complete", "until", "judged"):
        assert "# Report card" in cards(tmp_path / name)[0]


def test_a_withheld_number_is_named_and_not_given(tmp_path: Path) -> None:
    results = {"quiz": {"alias": "quiz", "acc,none": None}}
    markdown, html = cards(write_run(tmp_path / "run", results=document(results=results)))
    for card in (markdown.replace("\\", ""), html):
        assert "Not given: quiz acc: withheld (1 failed)" in card
        assert "The run gives no number." in card


def test_hostile_texts_are_texts(tmp_path: Path) -> None:
    text = "".join(HOSTILE) + "\n# heading | cell \ud800"
    facts = document(
        model_name=text, recipe={text: text}, results={text: {"alias": "x", "acc,none": 1.0}},
        configs={text: {"generation_kwargs": {"stop": text}}}, outcomes={text: {"scored": 1, "n": {"acc,none": 1}}},
        state=text, date=text,
    )  # fmt: skip
    markdown, html = cards(write_run(tmp_path / "run", results=facts), {"objective": text})
    kinds = {token.type for token in _inline(MarkdownIt("commonmark").enable("table").parse(markdown))}
    assert kinds.isdisjoint({"html_inline", "html_block", "link_open", "image", "code_inline"})
    assert len(re.findall(r"^#{1,3} ", markdown, re.MULTILINE)) == len(re.findall(r"<h[1-3]>", html))
    body = html.partition("<body>")[2]
    assert not re.search(r"<(script|img|svg|iframe|style|a)\b", body)
    assert set(re.findall(r"<(\w+)", body)) <= TAGS
    assert not set("\x1b\x07\u202e\u200b\ud800") & (set(markdown) | set(html)) - {"\u200b"}


def _inline(tokens: Any) -> Any:
    for token in tokens:
        yield token
        yield from token.children or ()


def test_the_command_writes_both_forms_or_one(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_run(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert main(["card", str(path)]) == 0
    names = ["org__model_20240101_000000_card.md", "org__model_20240101_000000_card.html"]
    assert capsys.readouterr().out.split() == names
    about = tmp_path / "about.yaml"
    about.write_text("objective: Whether to ship.\n")
    assert main(["card", str(path), "--out", "one.html", "--about", str(about)]) == 0
    assert "Whether to ship. (stated by people)" in Path("one.html").read_text()
    about.write_text("objectiv: x\n")
    listed, broken = tmp_path / "list.yaml", tmp_path / "broken.yaml"
    listed.write_text("- x\n")
    broken.write_text("a: [\n")
    record = write_record(tmp_path / "record")
    for words, reason in [
        ([str(path), "--about", str(about)], "--about: no item 'objectiv'; there are: access"),
        ([str(path), "--about", str(listed)], "write KEY: text for each item"),
        ([str(path), "--about", str(broken)], "not YAML"),
        ([str(path), "--about", "absent.yaml"], "cannot be read"),
        ([str(path), "--out", str(tmp_path / "run")], "that is a folder"),
        ([str(path), "--out", str(about.with_name("none") / "x" / "y.md"), "--about", str(about)], "no item"),
        ([str(record)], "no results yet"),
    ]:
        assert main(["card", *words]) == 2, words
        error = capsys.readouterr().err
        assert reason in error and len(error.splitlines()) == 1, error


@pytest.mark.parametrize(("scheme", "width", "ground"), [("light", 400, 255), ("dark", 1280, 21)])
def test_the_page_follows_the_reader(tmp_path: Path, chromium: Any, scheme: str, width: int, ground: int) -> None:
    file = tmp_path / "card.html"
    file.write_text(cards(write_run(tmp_path / "run", results=document(**WHOLE)))[1])
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour.startswith(f"rgb({ground}, ")
    assert complaints == []
    context.close()


def test_a_benchmarks_own_number_comes_first_and_counts_are_no_scores(tmp_path: Path) -> None:
    found = document(results={"megabench_core": {"alias": "m", "macro_mean,none": 0.25, "scored,none": 440}})
    part = {"score": 0.25, "ci95": [0.2, 0.3], "num_eval_tasks": 440}
    found["megabench_breakdown"] = {"full": {"intervals": {"model_summary": {"overall": part}}}}
    markdown = cards(write_run(tmp_path / "run", results=found))[0].replace("\\", "")
    rows = [[cell.strip() for cell in line.split("|")] for line in markdown.splitlines() if line.startswith("|")]
    (own,) = [row for row in rows if "overall ↑" in row]
    shown = ["MEGA-Bench, full set", "overall ↑", "0.25", "[0.2000, 0.3000]", "tasks like these", "440 tasks"]
    assert own[1:7] == shown
    assert not any(cell.startswith("scored") for row in rows for cell in row[:3])
