"""``lmms-eval show`` and ``results.load`` over runs with rounds, repeats, pipelines, a judge and failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.cli.main import main
from lmms_eval.results import load
from lmms_eval.results.sample import Piece, SampleMessage, conversations_of
from tests.cases import for_each
from tests.conversing import QUESTION, Speaker, rated_run, talked


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(["show", *arguments]) == 0
    return capsys.readouterr().out


def test_a_conversation_is_written_message_by_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def answers(request: Request) -> Response | str:
        is_last = request.doc_id == 1 and request.round == 1
        return Response.failure(request.id, "timeout", "no answer", 3) if is_last else f"said {request.round}"

    talked(tmp_path, "alone", Speaker(answers), system_instruction="Be brief, always.")
    whole, failed = (shown(capsys, str(tmp_path / "out"), "alone", doc) for doc in ("0", "1"))
    assert (
        "--- messages\n[system]\nBe brief, always.\n\n"
        f"[user]\n[image 1]{QUESTION} (0)\n\n[assistant]\nsaid 0\n\n"
        "[user, round 2, after the first 1 messages alone]\nYou said said 0. Are you sure?\n\n"
        f"[assistant, round 2]\nsaid 1\n\n--- media\n1. image: {tmp_path / 'tasks' / 'p0.png'}, 60 x 40\n"
    ) in whole
    assert "--- reason\ntimeout: no answer\nsent 3 times\n" in failed
    assert "Are you sure?\n\n--- media" in failed  # it ends with what was asked


def test_repeats_and_pipelines_are_written_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talked(tmp_path, "repeated", Speaker(lambda request: f"a{request.doc_id} b{request.repeat}"))
    text = shown(capsys, str(tmp_path / "out"), "repeated", "0")
    assert f"--- prompt\n{QUESTION} (0)\n" in text
    assert "--- repeat 3\na0 b2\n(exact_match: 1.0, 3 tokens out)" in text
    assert "--- filter second: scored\nb0\nexact_match: 0.0" in text
    assert "filter first" not in shown(capsys, str(tmp_path / "out"), "repeated", "0", "--filter", "second")
    sample = load(tmp_path / "out").task("repeated").sample(0, "second")
    assert [(one.answer, one.metrics, one.tokens.output) for one in sample.repeats] == [
        (f"a0 b{number}", {"exact_match": 0.0}, 3) for number in range(3)
    ]
    assert sample.tokens.output == 9


def test_the_judges_prompt_is_joined_from_the_runs_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rated_run(tmp_path)
    prompt = "Rate the reply 'a1'. <b>Reference</b>: 'a1'. ANSWER=cannot say"
    text = shown(capsys, str(tmp_path / "out"), "rated", "1")
    assert f"--- judge\n[user]\n[image 1]{prompt}\n1. image: {tmp_path / 'tasks' / 'p1.png'}, 60 x 40\n" in text
    assert "accepted: false\n" in text and 'replies: ["cannot say","cannot say"]' in text
    (line,) = shown(capsys, str(tmp_path / "out"), "rated", "1", "--json").splitlines()
    verdict, repeat = json.loads(line)["judge"]
    assert verdict["asked"] == repeat["asked"] == [{"role": "user", "content": [{"media": 0}, {"text": prompt}]}]
    (samples,) = (tmp_path / "out").rglob("*_samples_*")
    assert "Rate the reply" not in samples.read_text()  # a judge's text is in the run's record alone
    (journal,) = (tmp_path / "out").rglob("judgements-0.jsonl")
    assert journal.read_text().count("Rate the reply") == 2  # documents, not askings nor attempts
    journal.unlink()
    assert "Rate the reply" not in shown(capsys, str(tmp_path / "out"), "rated", "1")


def test_samples_are_typed(tmp_path: Path) -> None:
    talked(tmp_path, "marked")
    sample = load(tmp_path / "out").task("marked").sample(1)
    (message,) = sample.messages
    before, picture, after = message.content
    assert (message.role, before.text, after.text) == ("user", "Here is a picture ", " of something. What is it? (1)")
    assert picture.medium is not None and picture.kind == "image"
    assert picture.medium["path"] == str(tmp_path / "tasks" / "p1.png")
    assert message.text == before.text + after.text


MEDIUM = {"type": "image", "path": "/a.png"}
ONLY = (SampleMessage("user", (Piece(kind="image", medium=MEDIUM), Piece("asked"))),)


@for_each(
    "found",
    [
        None, [], "text", 3, [[]], {"role": "user"}, [{"role": "user"}], [{"content": []}], [["user", "x"]], [None],
        [{"role": "user", "content": "x"}], [{"role": "user", "content": [{"input": "x"}]}],
        [{"role": "user", "content": [{"text": "x"}], "round": "y"}],
    ],
)  # fmt: skip
def test_other_forms_of_messages_are_none(found: Any) -> None:
    assert conversations_of({"messages": found, "sent_media": [MEDIUM]}, "asked") == (ONLY,)


def test_media_that_are_not_there_are_told_as_unknown() -> None:
    content = [{"media": 7}, {"media": -1}, {"media": "x"}, {"type": "video"}]
    ((message,),) = conversations_of({"messages": [{"role": "user", "content": content}], "sent_media": [MEDIUM]}, "")
    assert [piece.medium for piece in message.content] == [None] * 4
    assert message.content[3].kind == "video"
