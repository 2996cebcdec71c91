"""The samples file tells the conversation as it went out, also after a kill and from the response cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import Instance
from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.model import lmms
from lmms_eval.api.request import Request, Response
from lmms_eval.engine.records import response_from_record
from lmms_eval.evaluation.run import run
from lmms_eval.storage.lines import sealed, unsealed
from tests.cases import for_each
from tests.conversing import QUESTION, Speaker, sample_rows, talked
from tests.evaluation.kit import NAME, Told, config
from tests.painting import png

Row = dict[str, Any]


def first(tmp: Path, task: str, model: Speaker | None = None, **over: Any) -> Row:
    talked(tmp, task, model, **over)
    return sample_rows(tmp / "out", task)[0]


def told(row: Row, conversation: list[Row] | None = None) -> list[tuple[Any, ...]]:
    """Role, round, and the parts: texts whole, media by the names of their files."""

    def part(one: Row) -> str:
        if "input" in one:
            return str(row["input"][slice(*one["input"])])
        if "media" in one:
            sent = row["sent_media"][one["media"]]
            return f"[{Path(sent.get('path', sent['sha256'])).name}]"
        return f"[{one['type']}]" if "type" in one else str(one["text"])

    messages = row["messages"] if conversation is None else conversation
    return [(one["role"], one.get("round", 0), *(part(piece) for piece in one["content"])) for one in messages]


def test_media_stand_at_their_places(tmp_path: Path) -> None:
    plain, marked = first(tmp_path, "plain"), first(tmp_path, "marked")
    assert told(plain) == [("user", 0, "[p0.png]", f"{QUESTION} (0)")]
    assert told(marked) == [("user", 0, "Here is a picture ", "[p0.png]", " of something. What is it? (0)")]
    assert QUESTION not in json.dumps([plain["messages"], marked["messages"]])  # the text stands once, in ``input``


def test_one_text_of_the_user_needs_no_messages(tmp_path: Path) -> None:
    run(config(tmp_path, model="told", log_samples=True), Told())
    row = sample_rows(tmp_path / "out", NAME)[0]
    assert row["input"] and "messages" not in row


def test_examples_and_the_system_instruction_are_turns_of_their_own(tmp_path: Path) -> None:
    shots = {"num_fewshot": 1, "fewshot_as_multiturn": True, "apply_chat_template": True}
    row = first(tmp_path, "shots", system_instruction="Be brief, always.", **shots)
    assert told(row) == [
        ("system", 0, "Be brief, always."),
        ("user", 0, "[p1.png]", f"{QUESTION} (1)"),
        ("assistant", 0, "a1"),
        ("user", 0, "[p0.png]", f"{QUESTION} (0)"),
    ]


def test_a_further_round_tells_only_what_it_added(tmp_path: Path) -> None:
    row = first(tmp_path, "history", Speaker(lambda request: f" said {request.round}\n"))
    assert told(row) == [
        ("user", 0, "[p0.png]", f"{QUESTION} (0)"),
        ("assistant", 0, " said 0\n"),
        ("user", 1, "Look again, round 1, please."),
        ("assistant", 1, " said 1\n"),
        ("user", 2, "Look again, round 2, please."),
        ("assistant", 2, " said 2\n"),
    ]
    assert [one.get("continues") for one in row["messages"]] == [None, None, True, None, True, None]


def test_a_round_that_was_sent_without_those_before_says_so(tmp_path: Path) -> None:
    row = first(tmp_path, "alone", system_instruction="Be brief, always.")
    assert told(row)[3:] == [("user", 1, "You said a0. Are you sure?"), ("assistant", 1, "a0")]
    assert row["messages"][3]["after"] == 1  # the system's message alone came before it


def test_what_a_tool_gave_is_told_where_it_was_not_sent(tmp_path: Path) -> None:
    row = first(tmp_path, "agent")
    assert told(row)[2:] == [
        ("user", 1, "[p0.png]", 'The tool says {"weather": "rain"}. Go on.'),
        ("assistant", 1, "a0"),
        ("tool", 1, '{"weather": "<b>sun</b>"}'),
    ]


def test_pictures_that_the_model_drew_stand_in_its_turn(tmp_path: Path) -> None:
    def draws(request: Request) -> Response | str:
        parts = ["Look: ", generated_image(png(9))]
        return Response.interleaved(request.id, parts) if request.round == 0 else "a0"

    row = first(tmp_path, "drawn", Speaker(draws))
    drawn = row["messages"][1]["content"]
    assert [part.get("text") for part in drawn] == ["Look: ", None]
    file = next((tmp_path / "out").rglob("*_samples_*")).parent / drawn[1]["path"]
    assert file.read_bytes() == png(9)
    assert told(row)[2] == ("user", 1, "[p0.png]", f"[{drawn[1]['sha256']}]", f"{QUESTION} (0)")


def test_repeats_that_went_otherwise_have_conversations_of_their_own(tmp_path: Path) -> None:
    assert isinstance(first(tmp_path, "repeated")["messages"][0], dict)  # all of them were asked the same
    model = Speaker(lambda request: f"said {request.repeat}")
    row = first(tmp_path, "alone", model, repeats=2)
    assert [told(row, one)[2][2] for one in row["messages"]] == [
        "You said said 0. Are you sure?", "You said said 1. Are you sure?",
    ]  # fmt: skip


def test_a_failed_sample_tells_what_was_asked_and_how_often(tmp_path: Path) -> None:
    def fails(request: Request) -> Response | str:
        return Response.failure(request.id, "timeout", "no answer", 4) if request.round == 1 else "a0"

    row = first(tmp_path, "history", Speaker(fails))
    assert (row["status"], row["error"], row["attempts"]) == ("failed", "timeout: no answer", 4)
    assert [one[:2] for one in told(row)] == [("user", 0), ("assistant", 0), ("user", 1)]
    assert told(row)[0][2] == "[p0.png]"
    (tmp_path / "tasks" / "p1.png").write_bytes(b"no picture")
    talked(tmp_path, "plain")
    broken = sample_rows(tmp_path / "out", "plain")[1]
    assert broken["status"] == "failed"
    assert told(broken) == [("user", 0, "[image]", f"{QUESTION} (1)")]


def test_messages_come_back_from_the_journal_and_are_made_anew_beside_the_cache(tmp_path: Path) -> None:
    def ends(request: Request) -> Response | str:
        return Response.failure(request.id, "timeout", "no answer") if request.round == 2 else f"said {request.round}"

    row = first(tmp_path, "history", Speaker(ends), use_cache=str(tmp_path / "cache"))
    assert row["status"] == "failed"
    again = Speaker(lambda request: f"said {request.round}")
    whole = first(tmp_path, "history", again, use_cache=str(tmp_path / "cache"))
    assert again.asked == ["history/0/0/2/0", "history/1/0/2/0"]
    assert [one[2] for one in told(whole) if one[0] == "assistant"] == ["said 0", "said 1", "said 2"]
    silent = Speaker()
    cached = talked(tmp_path, "history", silent, use_cache=str(tmp_path / "cache"), output_path=str(tmp_path / "new"))
    assert cached.exit_code == 0 and silent.asked == []
    assert sample_rows(tmp_path / "new", "history")[0]["messages"] == whole["messages"]


def test_a_journal_without_messages_shows_what_it_has(tmp_path: Path) -> None:
    first(tmp_path, "history")
    (journal,) = (tmp_path / "out").rglob("responses-0.jsonl")
    lines = []
    for line in journal.read_bytes().splitlines():
        record = json.loads(unsealed(line + b"\n") or b"")
        record.pop("messages", None)
        lines.append(sealed(json.dumps(record).encode()))
    journal.write_bytes(b"".join(lines))
    for scores in (tmp_path / "out").rglob("scores-*.jsonl"):
        scores.unlink()
    again = Speaker()
    (folder,) = (path.parent for path in (tmp_path / "out").rglob("run.json"))
    row = first(tmp_path, "history", again, resume=str(folder))
    assert again.asked == []
    assert told(row)[0] == ("user", 0, f"{QUESTION} (0)")
    assert told(row)[2][:2] == ("user", 1)
    assert not any("after" in one or "continues" in one for one in row["messages"])  # nobody knows


def test_a_plugin_that_renders_its_prompts_tells_none(tmp_path: Path) -> None:
    class Plugin(lmms):
        is_simple = False

        def generate_until(self, requests: list[Instance]) -> list[str]:
            return ["a0" for _ in requests]

        def loglikelihood(self, requests: list[Instance]) -> Any:
            raise NotImplementedError

        def generate_until_multi_round(self, requests: list[Instance]) -> Any:
            raise NotImplementedError

    talked(tmp_path, "marked", Plugin())  # type: ignore[arg-type]  # a model of either interface
    row = sample_rows(tmp_path / "out", "marked")[0]
    assert row["input"] == f"{QUESTION} (0)"
    assert "messages" not in row
    assert [(Path(medium["path"]).name, medium["origin"]) for medium in row["sent_media"]] == [("p0.png", "task")]


@for_each("record", [{"id": "t/0/0/0/0", "text": "x"}])
def test_a_response_of_an_older_journal_has_no_messages(record: Row) -> None:
    assert response_from_record(record).messages == ()
