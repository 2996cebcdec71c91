"""A sample told whole, in Chromium: the conversation, repeats and pipelines side by side, the judge, failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.request import Request, Response
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.conversing import QUESTION, Speaker, rated_run, talk_tasks, talked
from tests.painting import png
from tests.viewer.conftest import Watched, until
from tests.viewer.test_report import content

HOSTILE = "<img src=x onerror=alert(1)> \u202edlrow"


def answers(request: Request) -> Response | str:
    if request.round == 1 and request.doc_id == 1:
        return Response.failure(request.id, "timeout", "no answer", 4)
    return f"said {request.round} {HOSTILE}" if request.doc_id == 0 else "said"


def draws(request: Request) -> Response | str:
    return Response.interleaved(request.id, ["Look: ", generated_image(png(9))]) if request.round == 0 else "a0"


def repeats(request: Request) -> str:
    return f"a{request.doc_id} b{request.repeat}"


def thinks(request: Request) -> Response:
    """Thoughts that are cut for the second document, and thoughts with an answer for the others."""
    if request.doc_id == 1:
        return Response(request.id, text="<think>endless", finish_reason="length")
    return Response(request.id, text=f"<think>perhaps {HOSTILE}</think>a{request.doc_id}", finish_reason="stop")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of each kind, by the task's name."""
    folder = tmp_path_factory.mktemp("talk")
    talk_tasks(folder / "tasks")
    models = {"history": Speaker(answers), "drawn": Speaker(draws), "repeated": Speaker(repeats)}
    for task in ("marked", "history", "drawn", "repeated", "agent"):
        talked(folder, task, models.get(task), output_path=str(folder / "out" / task))
    system = {"system_instruction": "Be brief, always."}
    talked(folder, "alone", Speaker(repeats), repeats=2, output_path=str(folder / "out" / "alone"), **system)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "k")
        rated_run(folder, output_path=str(folder / "out" / "rated"))
    return folder / "out"


@pytest.fixture(scope="module")
def report(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "report"
    write_report([str(run) for run in sorted(runs.iterdir())], out, ReportOptions(compare=False))
    return out


def opened(report: Path, watched: Watched, task: str, doc: int = 0) -> Any:
    name = next(run["name"] for run in content(report, "runs")["runs"] if run["tasks"][0]["name"] == task)
    page = watched.open(report, f"#/{name.replace('@', '%40')}/{task}/{doc}")
    page.wait_for_selector(".sample")
    return page


def turns(page: Any) -> list[str]:
    return [turn.inner_text() for turn in page.query_selector_all(".turns > li")]


def block(page: Any, title: str) -> str:
    return str(page.inner_text(f".block:has(> h2:text-is({title!r}))"))


def test_media_stand_where_they_were_sent(report: Path, watched: Watched) -> None:
    page = opened(report, watched, "marked")
    pieces = page.query_selector_all(".block:has(> h2:text-is('Prompt')) .messages > *")
    assert [piece.evaluate("node => node.className") for piece in pieces] == ["text", "media", "text"]
    assert pieces[2].inner_text() == " of something. What is it? (0)"
    assert page.query_selector_all(".turns") == []  # one message of the user needs no heading


def test_rounds_are_a_conversation_of_texts(report: Path, watched: Watched) -> None:
    page = opened(report, watched, "history")
    told = turns(page)
    assert [turn.splitlines()[0] for turn in told] == [
        "User", "Assistant", "Round 2 – sent after what came before", "User", "Assistant",
        "Round 3 – sent after what came before", "User", "Assistant",
    ]  # fmt: skip
    assert "said 1 <img src=x onerror=alert(1)> U+202Edlrow" in told[4]
    assert "Look again, round 2, please." in told[6]


def test_a_failed_sample_shows_what_was_asked_and_why_it_ended(report: Path, watched: Watched) -> None:
    page = opened(report, watched, "history", 1)
    assert "sent 4 times" in page.inner_text("main")
    assert page.inner_text(".outcome").split("\n")[0].strip() == "failed"
    assert page.inner_text(".outcome .reason") == "timeout: no answer"
    assert turns(page)[-1] == "User\nLook again, round 1, please."
    assert page.query_selector_all(".block:has(> h2:text-is('Answer'))") == []


def test_repeats_have_scores_and_conversations_of_their_own(report: Path, watched: Watched) -> None:
    page = opened(report, watched, "alone")
    assert turns(page)[:1] == ["System\nBe brief, always."]
    assert "Round 2 – sent after the first message alone" in turns(page)
    page.click("button:text-is('Repeat 2')")
    page.wait_for_selector("text=You said a0 b1. Are you sure?")
    sides = page.query_selector_all(".repeats > section")
    assert [side.inner_text().split("\n")[0] for side in sides] == ["Repeat 1", "Repeat 2"]
    assert "exact_match\n0\n14 tokens in, 6 out" in sides[1].inner_text().replace("\n\n", "\n")
    assert "2 repeats · 28 tokens in, 12 out" in page.inner_text("main")


def test_thoughts_are_folded(watched: Watched, tmp_path: Path) -> None:
    talk_tasks(tmp_path / "tasks")
    talked(tmp_path, "alone", Speaker(thinks), repeats=1, output_path=str(tmp_path / "out"))
    write_report([str(tmp_path / "out")], tmp_path / "r", ReportOptions(compare=False))
    page = opened(tmp_path / "r", watched, "alone")
    folded = page.locator("details.thoughts")
    assert folded.count() == 1 and folded.get_attribute("open") is None
    assert folded.locator("summary").inner_text() == f"Thoughts ({2 * (len(HOSTILE) + 8)} characters)", "of two rounds"
    folded.locator("summary").click()
    assert folded.inner_text().count("<img src=x onerror=alert(1)>") == 2
    page = opened(tmp_path / "r", watched, "alone", 1)
    assert "no answer: truncated in thought" in page.inner_text("main")


def test_pipelines_stand_side_by_side(report: Path, watched: Watched) -> None:
    page = opened(report, watched, "repeated")
    first, second = (side.inner_text() for side in page.query_selector_all(".pipelines > section"))
    assert first.startswith("first") and "The same text as the reference." in first
    assert first.rstrip().endswith("1") and second.rstrip().endswith("0")
    assert "b0" in second
    repeat = page.query_selector_all(".repeats > section")[2].inner_text()
    assert [word for word in repeat.split() if word in ("first", "second", "0", "1")] == ["first", "1", "second", "0"]


def test_tools_and_drawn_pictures_stand_in_their_rounds(report: Path, watched: Watched) -> None:
    page = opened(report, watched, "agent")
    assert turns(page)[-1] == 'Result of the task\'s function (not sent)\n{"weather": "<b>sun</b>"}'
    page = opened(report, watched, "drawn")
    drawn = "document.querySelectorAll('.turn.assistant img, .turn.user img')"
    until(page, f"[...{drawn}].length === 4 && [...{drawn}].every(one => one.naturalWidth > 0)")
    sources = page.eval_on_selector_all(".turn img", "found => found.map(one => one.getAttribute('src'))")
    assert sources[1] == sources[3]  # what the model drew was sent back in the second round
    assert "Round 2 – sent without the messages above" in turns(page)


def test_the_judges_transcript(report: Path, watched: Watched) -> None:
    page = opened(report, watched, "rated", 1)
    text = block(page, "Judge, 2 questions")
    assert "Rate the reply 'a1'. <b>Reference</b>: 'a1'. ANSWER=cannot say" in text
    assert text.count("Rate the reply") == 1 and "The same prompt as rating." in text
    assert text.count("not readable") == 4 and "Reply 2 not readable" in text
    assert len(page.query_selector_all(".judgement img")) == 1
    scores = block(page, "Scores")
    assert [line for line in scores.splitlines() if line.strip()][:5] == [
        "Scores",
        "rating",
        "0",
        "Parsed answer extracted",
        "a1",
    ]
    assert "Reply\n7" in block(opened(report, watched, "rated", 0), "Judge, 2 questions").replace("\n\n", "\n")


def test_what_is_left_out_is_left_out_of_conversations_and_questions(runs: Path, tmp_path: Path) -> None:
    def everything(*keys: str) -> str:
        paths = [str(runs / "rated"), str(runs / "alone")]
        write_report(paths, tmp_path / "r", ReportOptions(redact=frozenset(keys), compare=False, media="none"))
        return "".join(file.read_text() for file in (tmp_path / "r" / "data").glob("text-*"))

    assert all(text in everything() for text in ("Rate the reply", "Be brief, always.", "Are you sure?", QUESTION))
    asked = everything("asked")
    assert "Rate the reply" not in asked and "Are you sure?" in asked
    left = everything("input", "question")
    assert not any(text in left for text in ("Rate the reply", "Be brief, always.", "Are you sure?", QUESTION))


def test_frames_between_texts_are_shown_alone(report: Path, watched: Watched, tmp_path: Path) -> None:
    """A line of another program may hold what no task here sends; places count characters, not their halves."""
    samples = tmp_path / "20240101_000000_samples_film.jsonl"
    samples.write_text(
        '{"doc_id": 0, "input": "\U0001f600 one two", "filtered_resps": "x", "target": "x", "exact_match": 1.0,'
        ' "sent_media": [{"type": "video", "path": "/absent/v.mp4", "frames": [0, 4], "times": [0.0, 1.5]}],'
        ' "messages": [{"role": "<b>judge</b>", "content": [{"input": [0, 5]}, {"media": 0, "frame": 1},'
        ' {"input": [6, 9]}, {"media": 5}, {"type": "audio"}]}, {"role": "user", "content": []}]}\n'
    )
    write_report([str(samples)], tmp_path / "report", ReportOptions(compare=False))
    page = watched.open(tmp_path / "report", "#/" + content(tmp_path / "report", "runs")["runs"][0]["name"] + "/film/0")
    page.wait_for_selector(".turns")
    first, second = turns(page)
    assert first.startswith("<b>judge</b>\n\U0001f600 one\n")
    assert "Frame 2 of v.mp4 at 1.5 s" in first.replace("1.500", "1.5")
    assert "Medium not recorded by this model" in first and "Audio not recorded by this model" in first
    assert second.split("\n")[-1] == "An empty message."
