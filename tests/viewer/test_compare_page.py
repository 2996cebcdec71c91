"""Runs against each other in headless Chromium, opened from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from lmms_eval.cli.main import main
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.viewer.conftest import HOSTILE, Watched, painted, until
from tests.viewer.test_accessibility import AXE, faults
from tests.viewer.test_comparison import divided, table, three  # noqa: F401
from tests.viewer.test_pages import status

GOLD, LETTER = "baseline@gold", "baseline@letter"


def address(*pairs: tuple[str, str]) -> str:
    return f"#/:compare?{urlencode(pairs)}"


@pytest.fixture(scope="module")
def report(quiz_runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compared") / "report"
    write_report([str(run) for run in quiz_runs], out, ReportOptions())
    return out


@pytest.fixture(scope="module")
def of_three(three: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    out = tmp_path_factory.mktemp("of_three") / "report"
    write_report([str(run) for run in three], out, ReportOptions())
    return out


def ids(page: Any) -> list[str]:
    return [row.inner_text().split("\n")[0] for row in page.query_selector_all(".list a.row")]


def said(page: Any) -> list[list[str]]:
    """Name of the run, score and answer of each side, each of which begins with the run's letter and has a verdict."""
    words = [side.inner_text().split()[:5] for side in page.query_selector_all(".side")]
    assert [one[0] for one in words] == [*"ABCDE"][: len(words)]
    assert all(one[2] == {"0": "wrong", "1": "correct"}[one[3]] for one in words)
    return [[one[1], *one[3:]] for one in words]


def test_numbers_and_the_matrix_of_flips(report: Path, watched: Watched) -> None:
    page = watched.open(report)
    page.click("button:text-is('Compare')")
    page.wait_for_selector(".kinds")
    row = page.inner_text("[aria-label=Differences] tbody tr").split()
    for text in ("100.00", "28.99", "+71.01", "better", "<0.0001", "69"):
        assert text in row
    assert [cell.inner_text() for cell in page.query_selector_all(".kinds td a")] == ["20", "49", "0", "0"]
    assert "mcnemar exact" in page.inner_text(".facts")
    assert page.query_selector("[aria-label=Differences] .plot.right .ends") is not None
    assert page.inner_text("[aria-label=Differences] th .ticks").split() == ["0", "100"]
    status(page, "69 documents")
    changed = page.query_selector("[aria-label=Documents] button >> nth=1")
    assert changed.inner_text().split() == ["Changed", "only", "49"]
    changed.click()
    status(page, "49 of 69 documents")
    page.click(f"[aria-label='49 documents: only {GOLD} right']")
    status(page, "49 of 69 documents")
    assert "flip=f" in page.url
    page.click("[aria-label=Documents] button:has-text('Both right')")
    status(page, "20 of 69 documents")
    page.click("summary:has-text('Filters')")
    page.select_option("label:has-text('level') select", "3")
    status(page, "5 of 69 documents")
    assert ids(page) == ["3", "15", "27", "39", "51"]
    page.fill("#search", "7")
    status(page, "1 of 69 documents")


def test_changed_and_wrong_documents_are_the_first_filters(report: Path, watched: Watched) -> None:
    page = watched.open(report, "#/:compare")
    status(page, "69 documents")
    buttons = page.locator("[aria-label=Documents][role=group] button")
    texts = [" ".join(text.split()) for text in buttons.all_inner_texts()]
    assert texts == ["All 69", "Changed only 49", "Wrong only 49", "Only A right 49", "Both right 20"]
    buttons.nth(2).focus()
    page.keyboard.press("Enter")
    status(page, "49 of 69 documents")
    assert buttons.nth(2).get_attribute("aria-pressed") == "true" and "flip=wrong" in page.url
    page.keyboard.press("Enter")
    status(page, "69 documents")


def test_a_verdict_names_the_documents_that_it_depends_on_from_either_side(tmp_path: Path, watched: Watched) -> None:
    scores: list[float | None] = [1.0] * 280 + [0.0] * 80 + [None] * 40
    failing = table(tmp_path / "failing.csv", scores)
    plain = table(tmp_path / "plain.csv", [float(n < 240 or n >= 360) for n in range(400)])
    write_report([str(failing), str(plain)], tmp_path / "report", ReportOptions())
    for base, ends, seen in (("plain", "+0.00 to +10.00", "better"), ("failing", "−10.00 to 0.00", "worse")):
        page = watched.open(tmp_path / "report", address(("run", "failing"), ("run", "plain"), ("base", base)))
        page.wait_for_selector("[aria-label=Differences] tbody tr")
        row = page.inner_text("[aria-label=Differences] tbody tr")
        assert "cannot tell" in row and "depends on 40 documents without a score" in row
        page.wait_for_selector(".facts")
        facts = page.inner_text(".facts")
        assert ends.replace("+0.00", "0.00") in facts and f"{seen} over the others" in facts
        assert "tango, about questions like these" in facts


def test_the_baseline_turns_the_signs(report: Path, watched: Watched) -> None:
    page = watched.open(report, "#/:compare")
    page.wait_for_selector(".kinds")
    page.select_option("label:has-text('Baseline') select", GOLD)
    until(page, "() => document.querySelector('[aria-label=Differences] tbody')?.innerText.includes('worse')")
    assert "−71.01" in page.inner_text("[aria-label=Differences] tbody")
    assert [cell.inner_text() for cell in page.query_selector_all(".kinds td a")] == ["20", "0", "49", "0"]
    page.click(f"[aria-label='49 documents: only {GOLD} right']")
    status(page, "49 of 69 documents")
    assert "flip=s" in page.url


def test_the_baseline_turns_the_ends_of_what_depends_on_missing_scores(tmp_path: Path, watched: Watched) -> None:
    failing = [
        "id,score,status",
        *(f"{one}{',,failed' if one > 360 else f',{int(one <= 280)},scored'}" for one in range(1, 401)),
    ]
    plain = ["id,score", *(f"{one},{int(one <= 240 or one > 360)}" for one in range(1, 401))]
    for name, lines in (("failing", failing), ("plain", plain)):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    out = tmp_path / "report"
    write_report([str(tmp_path / "failing.csv"), str(tmp_path / "plain.csv")], out, ReportOptions())
    page = watched.open(out, "#/:compare")
    page.wait_for_selector(".facts")
    for baseline, ends in (("plain", "0.00 to +10.00"), ("failing", "−10.00 to 0.00")):
        page.select_option("label:has-text('Baseline') select", baseline)
        until(page, "(ends) => document.querySelector('.facts')?.innerText.includes(ends)", ends)


def test_one_document_side_by_side(report: Path, watched: Watched) -> None:
    page = watched.open(report, address(("flip", "f"), ("sort", "id")))
    status(page, "49 of 69 documents")
    painted(page)
    for key in ("j", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector("text=2 of 49")
    assert page.inner_text("h1") == "2"
    painted(page)
    page.keyboard.press("j")
    page.wait_for_selector("text=3 of 49")
    page.wait_for_selector(".side pre")
    assert page.inner_text("h1") == "4"
    assert "What is 4 and one?" in page.inner_text(".block:has(h2:text-is('Prompt'))")
    assert said(page) == [[GOLD, "1", "5"], [LETTER, "0", "A"]]
    picture = page.wait_for_selector("figure img")
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 512
    painted(page)
    page.keyboard.press("u")
    status(page, "49 of 69 documents")
    assert "doc=" not in page.url


def test_words_that_differ_are_marked(tmp_path: Path, watched: Watched) -> None:
    for name, word in (("a", "red"), ("b", "blue")):
        (tmp_path / f"{name}.csv").write_text(
            f"id,task,score,answer,target\n1,q,1,a {word} circle,a green circle\n2,q,0,,\n"
        )
    write_report([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], tmp_path / "r", ReportOptions())
    page = watched.open(tmp_path / "r", address(("run", "a"), ("run", "b"), ("doc", "1")))
    page.wait_for_selector(".side ins")
    assert page.inner_text(".side:first-child ins") == "red"
    assert page.inner_text(".side:first-child del") == "blue"
    assert page.inner_text(".side:last-child del") == "green"  # the baseline beside the reference
    page.select_option("label:has-text('Marked words') select", "reference")
    until(page, "() => document.querySelector('.side del').innerText === 'green'")
    assert "marks=reference" in page.url


def test_three_runs_have_pairs_ranks_and_odd_ones(of_three: Path, watched: Watched) -> None:
    page = watched.open(of_three, address(("task", "quiz"), ("metric", "acc,none")))
    page.wait_for_selector(".pairwise a")
    assert len(page.query_selector_all(".pairwise a")) == 6
    assert len(page.query_selector_all("[aria-label=Ranks] tbody tr")) == 3
    assert [row.inner_text().split()[0] for row in page.query_selector_all("[aria-label=Scores] tbody tr")] == [
        "quiz",
        "text",
    ]
    assert len(page.query_selector_all("[aria-label=Differences] tbody tr")) == 3  # of the chosen number
    page.wait_for_selector(".list a.row")
    page.select_option("[aria-label='Only one run right or wrong']", "right 0")
    until(page, "() => document.querySelector('[role=status]').innerText.includes(' of 90 documents')")
    page.click(".list a.row")
    page.wait_for_selector(".side pre")
    assert [side[:2] for side in said(page)] == [["a", "1"], ["b", "0"], ["c", "0"]]
    page.click("text=List")
    page.wait_for_selector(".pairwise a")
    page.click(".pairwise a:has-text('c against b')")
    page.wait_for_selector(".kinds")
    assert "run=c&run=b&base=b" in page.url
    page = watched.open(of_three, address(("run", "a"), ("run", "b"), ("run", "c"), ("base", "c")))
    page.wait_for_selector(".pairwise a")
    assert len(page.query_selector_all("[aria-label=Differences] tbody tr")) == 2
    page.click("[aria-label=Scores] a[aria-label=text]")
    page.wait_for_selector("h2:has-text('text f1')")


@pytest.mark.skipif(not AXE.is_file(), reason="`make viewer` installs axe-core")
def test_several_runs_are_compared_accessibly(of_three: Path, chromium: Any) -> None:
    for place in ("#/", address(("task", "quiz"), ("metric", "acc,none"))):
        page = chromium.new_page()
        page.goto(f"{(of_three / 'index.html').as_uri()}{place}")
        page.wait_for_selector("#runs tbody td, .pairwise a")
        painted(page)
        assert faults(page) == []
        page.close()


def test_several_runs_have_letters_signs_and_words(tmp_path: Path, watched: Watched) -> None:
    runs = [
        table(tmp_path / f"{name}.csv", [float(number < right) for number in range(100)])
        for name, right in (("low", 30), ("middle", 60), ("high", 62))
    ]
    write_report([str(run) for run in runs], tmp_path / "r", ReportOptions())
    page = watched.open(tmp_path / "r", "#/:compare")
    page.wait_for_selector("[aria-label=Scores] tbody td")
    heads = page.locator("[aria-label=Scores] thead th").all_inner_texts()
    assert heads[1:] == ["A low", "B middle", "C high"]
    cells = [" ".join(text.split()) for text in page.locator("[aria-label=Scores] tbody td").all_inner_texts()]
    assert cells[1:] == ["30.0 ▼ worse than B C", "60.0 ▲ better than A", "62.0 ▲ better than A"]
    assert page.locator("[aria-label=Scores] .best").all_inner_texts() == ["60.0", "62.0"]
    grid = page.locator(".pairwise tbody td").evaluate_all("cells => cells.map(one => one.className)")
    assert grid == ["itself", "down", "down", "up", "itself", "open", "up", "open", "itself"]
    assert "▲ better" in page.inner_text(".pairwise td.up")
    pair = page.inner_text("[aria-label=Differences] tbody tr")
    assert pair.split()[:5] == ["A", "−", "B", "low", "−"] and "▼ worse" in pair


def test_numbers_by_a_column(tmp_path: Path, watched: Watched) -> None:
    write_report([str(run) for run in divided(tmp_path)], tmp_path / "r", ReportOptions())
    two = (("run", "a"), ("run", "b"), ("task", "quiz"), ("metric", "acc,none"))
    page = watched.open(tmp_path / "r", address(*two))
    page.select_option("#by", "kind")
    page.wait_for_selector("[aria-label='By kind'] tbody tr")
    rows = [row.inner_text().split() for row in page.query_selector_all("[aria-label='By kind'] tbody tr")]
    assert [(row[0], row[-1]) for row in rows] == [("(none)", "40"), ("<b>blue</b>", "40"), ("red", "40")]
    gains = [row[1] for row in rows]
    assert "by=kind" in page.url
    page.select_option("label:has-text('Baseline') select", "a")
    until(page, "() => document.querySelector('[aria-label=\"By kind\"]')?.innerText.includes('−')")
    turned = [row.inner_text().split()[1] for row in page.query_selector_all("[aria-label='By kind'] tbody tr")]
    assert turned == [gain.translate(str.maketrans("+−", "−+")) for gain in gains] != gains
    page = watched.open(tmp_path / "r", address(("task", "quiz"), ("metric", "acc,none"), ("by", "kind")))
    page.wait_for_selector("[aria-label='By kind'] tbody tr")
    assert len(page.query_selector_all("[aria-label='By kind'] tbody tr")) == 9
    page = watched.open(tmp_path / "r", address(*two[:2], ("task", "text"), ("metric", "f1,none"), ("by", "kind")))
    page.wait_for_selector("text=The documents of text have no column kind.")
    page = watched.open(tmp_path / "r", address(*two, ("by", "<i>none")))
    page.wait_for_selector("text=no column <i>none groups")


def test_what_cannot_be_compared_is_said(quiz_runs: tuple[Path, Path], tmp_path: Path, watched: Watched) -> None:
    alone = table(tmp_path / "alone.csv", [1, 0])
    write_report([str(run) for run in (*quiz_runs, alone)], tmp_path / "r", ReportOptions(media="none"))
    page = watched.open(tmp_path / "r", address(("run", GOLD), ("run", "alone")))
    page.wait_for_selector("text=have no task in common")
    page = watched.open(tmp_path / "r", address(("run", GOLD), ("run", "nobody")))
    page.wait_for_selector("text=the report holds no run nobody")
    page = watched.open(tmp_path / "r", address(("doc", "none")))
    page.wait_for_selector("text=these runs share no document none")
    write_report([str(quiz_runs[0]), str(alone)], tmp_path / "none", ReportOptions(media="none"))
    page = watched.open(tmp_path / "none")
    page.wait_for_selector("h1")
    assert page.query_selector("button:text-is('Compare')") is None


def test_hostile_texts_are_texts(report: Path, tmp_path: Path, watched: Watched) -> None:
    page = watched.open(report, address(("doc", "60")))
    page.wait_for_selector(".side pre")
    assert HOSTILE[0] in page.inner_text(".side")
    assert page.query_selector("#app script, #app iframe, #app svg, #app style") is None
    runs = []
    for name in ("<img src=x onerror=alert(1)>", ":compare", "a,b & c=d"):
        runs.append(tmp_path / f"{name}.csv")
        rows = "".join(
            f'"{text.replace(chr(34), chr(39))}",{n % 2},{text[:3]}x\n' for n, text in enumerate(HOSTILE[:6])
        )
        runs[-1].write_text(f"id,score,answer\n{rows}")
    write_report([str(run) for run in runs], tmp_path / "r", ReportOptions())
    names = [("run", run.stem) for run in runs]
    page = watched.open(tmp_path / "r", address(*names, ("doc", HOSTILE[1])))
    page.wait_for_selector(".side pre")
    shown = [link.inner_text() for link in page.query_selector_all(".side h2")]
    assert shown == [f"{letter}\n{run.stem}" for letter, run in zip("ABC", runs, strict=True)]
    page = watched.open(tmp_path / "r", address(*names))
    page.wait_for_selector(".pairwise a")
    page.wait_for_selector(".list a.row")
    assert HOSTILE[3].replace('"', "'") in ids(page)
    page = watched.open(tmp_path / "r", f"#/{quote(':compare')}")
    page.wait_for_selector("h1:has-text(':compare')")
    assert "Results" in page.inner_text("main")  # the page of the run, not the comparison


def test_a_single_file_compares_too(quiz_runs: tuple[Path, Path], tmp_path: Path, watched: Watched) -> None:
    out = tmp_path / "one.html"
    write_report([str(run) for run in quiz_runs], out, ReportOptions(single_file=True, limit=30))
    page = watched.open(out, "#/:compare")
    page.wait_for_selector(".kinds")
    assert "holds 30 of these 69 documents" in page.inner_text("main")
    status(page, "30 documents")
    page.click(".list a.row")
    page.wait_for_selector(".side pre")


def test_narrow_pages_do_not_scroll_sideways(of_three: Path, report: Path, watched: Watched) -> None:
    watched.page.set_viewport_size({"width": 400, "height": 800})
    for folder, place in ((of_three, "#/:compare"), (report, "#/:compare"), (report, address(("doc", "7")))):
        page = watched.open(folder, place)
        page.wait_for_selector(".list a.row, .side pre")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place


def test_differences_over_prompts(tmp_path: Path, watched: Watched) -> None:
    variants = tmp_path / "prompts.yaml"
    variants.write_text('- {name: polite, pre_prompt: "Please. "}\n- {name: terse, post_prompt: " One letter."}\n')
    runs = []
    for name, strategy in (("gold", "gold"), ("same", "constant,text=none")):
        runs.append(str(tmp_path / name))
        arguments = ["--model", "baseline", "--model_args", f"strategy={strategy}", "--output_path", runs[-1]]
        arguments += ["--tasks", "megabench_demo", "--limit", "12", "--log_samples"]
        assert main(["eval", *arguments, "--prompt_variants", str(variants)]) == 0
    write_report(runs, tmp_path / "report", ReportOptions(media="none"))
    page = watched.open(tmp_path / "report", "#/:compare")
    page.wait_for_selector("h2:has-text('Over prompts')")
    shown = page.inner_text("[aria-label='Differences over prompts'] tbody")
    assert "+100.00" in shown and "holds under all 3 prompts" in shown
    page.select_option("label:has-text('Baseline') select", "baseline@gold")
    table = "document.querySelector('[aria-label=\"Differences over prompts\"] tbody')"
    until(page, f"() => {table}?.innerText.includes('−100.00')")
