"""What is the answer in a text, and one score for every local back end and every form of thoughts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.main import main
from lmms_eval.models.thoughts import ReadingRules, Written
from tests.cases import for_each
from tests.models.chat_form.test_thoughts import WRITES
from tests.models.offline.engines import Recorder, Writer, stand_ins
from tests.models.scripted import CHAT, THINKS, Script, save_model, scripted

PAIRS = (("<think>", "</think>"), ("[T]", "[/T]"))


def read(text: str, *until: str, **reading: Any) -> Written:
    return ReadingRules(until, PAIRS, **reading).read(text)


@for_each(
    ("text", "options", "answer", "ended_by"),
    [
        ("a b", {}, "a ", "b"),
        ("c", {}, "c", ""),
        ("\n\nb", {}, "\n\n", "b"),
        ("<think>b</think>\nc b", {}, "\nc ", "b"),
        ("<think>b</think>\n\nc", {}, "\n\nc", ""),
        ("<think>b</think>[T]b[/T]cb", {}, "c", "b"),
        ("b</think>cb", {"is_opened": True}, "c", "b"),
        ("b, <think> b</think>cb", {"is_opened": True}, "c", "b"),
        ("b, b", {"is_opened": True}, "", ""),
        ("<think>b", {}, "", ""),
        ("c <think>b</think>", {}, "c <think>", "b"),
        ("\n\nc b", {"follows_thoughts": True}, "\n\nc ", "b"),
    ],
)
def test_the_answer_ends_before_the_first_stop_string_behind_the_thoughts(
    text: str, options: dict[str, Any], answer: str, ended_by: str
) -> None:
    written = read(text, "b", **options)
    assert (written.answer, written.ended_by) == (answer, ended_by)
    keeping = read(text, "b", keeps_thoughts=True, **options)
    assert (keeping.text, keeping.thoughts) == (written.reasoning + written.answer, None)
    assert keeping.answer == written.answer


def test_the_first_of_several_stop_strings_ends_it() -> None:
    assert read("one two three", "three", "two").text == "one "
    assert read("one\n\ntwo", "\n\n").text == "one"
    assert read("\n\ntwo", "\n\n").text == ""
    assert read("one").ended_by is None
    assert read("one", "x").ended_by == ""


THOUGHT = "Is it {wrong}?\n\nNo:\nit is not {wrong}."
FORMS: dict[str, tuple[str, str]] = {
    "plain": ("plain", "{answer}"),
    "blank lines": ("plain", "So.\n\nIt is {answer}"),
    "inline": ("plain", f"<think>{THOUGHT}</think>\n\n{{answer}}"),
    "opened": ("opens", f"{THOUGHT}</think>\n\n{{answer}}"),
    "special tokens": ("special", f"[THINK]{THOUGHT}[/THINK]{{answer}}"),
}
OWN_TAGS = ("plain", f"<hm>{THOUGHT}</hm>\n\n{{answer}}")
THINKING = ("<think>", "Is it", "[THINK]")
TEMPLATES = {"plain": (CHAT, ()), "opens": (THINKS, ()), "special": (CHAT, ("[THINK]", "[/THINK]"))}
TASK = """
task: forms
dataset_path: json
dataset_kwargs: {data_files: {test: forms.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: question
doc_to_target: answer
generation_kwargs: GENERATION
filter_list:
  - {name: last, filter: [{function: regex, regex_pattern: "(a[0-9])\\\\W*$"}, {function: take_first}]}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
"""
DOCUMENTS = 4


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Checkpoints by template; the one with a ``chat`` of its own too."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    from tests.models.chat_form.folders import write

    root = tmp_path_factory.mktemp("forms")
    made = {name: save_model(root / name, *of) for name, of in TEMPLATES.items()}
    return {**made, "chat": write(root / "chat", "internvl", WRITES)}


Score = Callable[..., dict[str, Any]]


@pytest.fixture
def score(folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Score:
    """Runs the command line over questions, with a model that writes in a form; returns what came of it."""

    def words(form: str) -> Script:
        def said(prompt: str) -> str:
            number = int(prompt.split("number ")[1][0])
            answer = f"a{number}" if number else "a9"  # one of the answers is wrong
            return FORMS[form][1].format(answer=answer, wrong=f"a{number}")

        return said

    def run(back_end: str, form: str, generation: str, *options: str) -> dict[str, Any]:
        template = FORMS[form][0]
        lines = [{"question": f"Say number {number}.", "answer": f"a{number}"} for number in range(DOCUMENTS)]
        if back_end == "internvl":
            opens = "OPEN " if template == "opens" else ""
            for line in lines:
                line["question"] += f" {opens}WRITE {words(form)(line['question'])}"
        (tmp_path / "forms.jsonl").write_text("\n".join(map(json.dumps, lines)))
        (tmp_path / "forms.yaml").write_text(TASK.replace("GENERATION", generation))
        folder = folders["chat" if back_end == "internvl" else template]
        arguments = f"pretrained={folder}"
        if back_end == "hf_text":
            from lmms_eval.models.families import table

            monkeypatch.setattr(table, "wrapper", lambda _: scripted(words(form)))
            arguments += ",dry_requests=false"
        elif back_end in ("vllm", "sglang"):
            from transformers import AutoTokenizer

            seen = Recorder()
            stand_ins(monkeypatch, seen)
            seen.writer = Writer(AutoTokenizer.from_pretrained(folder), words(form))
        command = ["--model", back_end, "--model_args", arguments, "--tasks", "forms", "--log_samples", "--allow_blank"]
        command += ["--include_path", str(tmp_path), "--output_path", str(tmp_path / "out"), "--trust_remote_code"]
        code = main([*command, *options])
        (results,) = (tmp_path / "out").rglob("*_results.json")
        (samples,) = (tmp_path / "out").rglob("*_samples_*.jsonl")
        document = json.loads(results.read_text())
        rows = [json.loads(line) for line in samples.read_text().splitlines()]
        return {
            "code": code,
            "score": document["results"]["forms"]["exact_match,last"],
            "outcome": {name: document["outcomes"]["forms"].get(name) for name in ("scored", "failed", "answers")},
            "finish": [row["finish_reason"] for row in rows],
            "blank": [row.get("blank") for row in rows],
            "thoughts": [bool(row.get("thoughts")) for row in rows],
        }

    return run


CASES = [
    (back_end, form)
    for back_end in ("hf_text", "vllm", "internvl")
    for form in FORMS
    if (back_end, form) != ("internvl", "special tokens")  # that checkpoint's tokenizer has none of them
]


@pytest.mark.parametrize(("back_end", "form"), CASES)
def test_one_score_and_one_status(score: Score, back_end: str, form: str) -> None:
    got = score(back_end, form, "{max_new_tokens: 100}")
    assert (got["code"], got["score"]) == (0, 0.75)
    assert got["finish"] == ["stop"] * DOCUMENTS
    assert got["blank"] == [None] * DOCUMENTS
    assert got["thoughts"] == [form not in ("plain", "blank lines")] * DOCUMENTS


@pytest.mark.parametrize(("back_end", "form"), [case for case in CASES if FORMS[case[1]][1].startswith(THINKING)])
@pytest.mark.parametrize("generation", ['{max_new_tokens: 100, until: ["\\n\\n"]}', "{max_new_tokens: 14}"])
def test_stopped_or_cut_off(score: Score, back_end: str, form: str, generation: str) -> None:
    got = score(back_end, form, generation)
    is_cut = "14" in generation
    assert (got["code"], got["score"]) == (0, 0.0 if is_cut else 0.75)
    assert got["finish"] == ["length" if is_cut else "stop"] * DOCUMENTS
    assert got["blank"] == ["truncated in thought" if is_cut else None] * DOCUMENTS
    assert got["thoughts"] == [True] * DOCUMENTS


@pytest.mark.parametrize("back_end", ["hf_text", "vllm"])
def test_tags_of_ones_own(score: Score, back_end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMS, "own tags", OWN_TAGS)
    tags = json.dumps([["<hm>", "</hm>"]])
    got = score(back_end, "own tags", '{max_new_tokens: 100, until: ["\\n\\n"]}', "--thinking_tags", tags)
    assert (got["code"], got["score"]) == (0, 0.75)
    assert got["thoughts"] == [True] * DOCUMENTS
