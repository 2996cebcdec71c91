"""A model that thinks gives one score, one status and one count with ``hf``, the real vLLM and its server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.config import build_config
from lmms_eval.evaluation.run import run
from lmms_eval.models.offline.model import OfflineModel
from tests.engines.conftest import build
from tests.engines.models import ENGINE, vllm_server
from tests.engines.thinker import Lesson, save_thinker
from tests.models.test_thoughts import FORMS, OWN_TAGS, TASK, THOUGHT

DOCUMENTS, LIMIT, SHORT = 4, 100, 14
OWN = {"thinking_tags": json.dumps([["<hm>", "</hm>"]])}
SPECIAL = ("[THINK]", "[/THINK]")
TEXTS = {
    **{name: text for name, (_, text) in FORMS.items()},
    "own tags": OWN_TAGS[1],
    "stop behind": "<think>Is it {wrong}? No.</think>\n\n{answer}",
    "goes on": f"<think>{THOUGHT}</think>\n\n{{answer}}\n\nOr is it {{wrong}}?",
    "some endless": f"<think>{THOUGHT}</think>\n\n{{answer}}",
    "some endless, opened": f"{THOUGHT}</think>\n\n{{answer}}",
}
OPENED = ("opened", "some endless, opened")
"""The template opens their thoughts."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run, and what comes of it with every back end."""

    form: str
    score: float = 0.75
    limit: int = LIMIT
    until: str | None = None
    finish: tuple[str, ...] = ("stop",) * DOCUMENTS
    blank: tuple[str | None, ...] = (None,) * DOCUMENTS
    ended: int | None = None
    """Answers that stop strings ended."""
    options: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        stop = f", until {self.until!r}" if self.until else ""
        return f"{self.form}, {self.limit} tokens{stop}"


CUT = "truncated in thought"
ALL_CUT: dict[str, Any] = {
    "score": 0.0, "limit": SHORT, "finish": ("length",) * DOCUMENTS, "blank": (CUT,) * DOCUMENTS,
}  # fmt: skip
SOME_CUT: dict[str, Any] = {
    "score": 0.25, "finish": ("stop", "stop", "length", "length"), "blank": (None, None, CUT, CUT),
}  # fmt: skip
STOP: dict[str, Any] = {"until": "\n\n", "ended": 0}
PLAIN = (Case("plain"), Case("blank lines"), Case("blank lines", 0.0, until="\n\n", ended=DOCUMENTS))
THINKING = (
    Case("inline"),
    Case("opened"),
    Case("inline", **ALL_CUT),
    Case("some endless", **SOME_CUT),
    Case("some endless, opened", **SOME_CUT),
    Case("inline", **STOP),
    Case("stop behind", **STOP),
    Case("goes on", 1.0),
    Case("goes on", until="\n\n", ended=DOCUMENTS),
)
PROMPT_KNOWN = (Case("opened", **ALL_CUT), Case("opened", **STOP))
"""An answer that ends in these thoughts holds no tag. A back end that does not see the prompt's end, such as a server
without a reasoning parser, cannot tell such thoughts from an answer."""
OWN_TAGGED = (Case("own tags", options=OWN), Case("own tags", options=OWN, **STOP))
SPECIAL_TOKENS = (
    Case("special tokens"),
    Case("special tokens", **ALL_CUT),
    Case("special tokens", **STOP),
)
CASES = {
    "vllm": (*PLAIN, *THINKING, *PROMPT_KNOWN, *OWN_TAGGED),
    "vllm with special tokens": SPECIAL_TOKENS,
    "server": (*PLAIN, *THINKING, *OWN_TAGGED),
    "server with a reasoning parser": (*THINKING, *PROMPT_KNOWN),
}


def lessons(forms: list[str]) -> list[Lesson]:
    """What the model learns. It answers the first question wrongly; of some forms the last two have no end."""
    made = []
    for form in forms:
        for number in range(DOCUMENTS):
            is_endless = form.startswith("some endless") and number >= 2
            text = TEXTS[form].partition("</think>")[0] if is_endless else TEXTS[form]
            text = text.format(answer=f"a{number or 9}", wrong=f"a{number}")
            made.append(Lesson(question(form, number), text, form in OPENED, not is_endless))
    return made


def question(form: str, number: int) -> str:
    return f"Say number {number}, {form}."


@pytest.fixture(scope="module")
def thinker(_environment: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    forms = [form for form in TEXTS if form != "special tokens"]
    return save_thinker(tmp_path_factory.mktemp("models") / "thinker", lessons(forms))


@pytest.fixture(scope="module")
def special_thinker(_environment: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tags of its thoughts are special tokens, which engines leave out of texts."""
    return save_thinker(tmp_path_factory.mktemp("models") / "special", lessons(["special tokens"]), SPECIAL)


@dataclass(frozen=True, slots=True)
class BackEnd:
    folder: Path
    """Of the model."""
    name: str
    make: Callable[[], Any]
    """A model as a new command has it."""


@pytest.fixture(scope="module")
def back_end(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackEnd]:
    """One engine at a time."""
    kind: str = request.param
    folder: Path = request.getfixturevalue("special_thinker" if "special" in kind else "thinker")
    if kind.startswith("vllm"):
        model: OfflineModel = build("vllm", model=str(folder), **ENGINE)

        def fresh() -> Any:
            model._has_thought = False  # it remembers the answers of earlier runs
            return model

        yield BackEnd(folder, "vllm", fresh)
        model.close()
        return
    options = ("--reasoning-parser", "deepseek_r1") if "parser" in kind else ()
    with vllm_server(folder, tmp_path_factory.mktemp("server") / "log", *options) as url:
        yield BackEnd(folder, "openai", lambda: build("openai", model="m", base_url=url))


def outcome(back_end: BackEnd, case: Case, folder: Path) -> dict[str, Any]:
    """What a run says of a case."""
    folder.mkdir()
    rows = [{"question": question(case.form, number), "answer": f"a{number}"} for number in range(DOCUMENTS)]
    (folder / "forms.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    generation: dict[str, Any] = {"max_new_tokens": case.limit}
    if case.until is not None:
        generation["until"] = [case.until]
    if case.form in OPENED:
        generation["chat_template_kwargs"] = {"enable_thinking": True}
    (folder / "forms.yaml").write_text(TASK.replace("GENERATION", json.dumps(generation)))
    values = {
        "model": back_end.name, "tasks": "forms", "include_path": str(folder), "output_path": str(folder / "out"),
        "log_samples": True, "allow_blank": True, "verbosity": "ERROR", **case.options,
    }  # fmt: skip
    report = run(build_config(values), back_end.make())
    (samples,) = (folder / "out").rglob("*_samples_forms.jsonl")
    told = [json.loads(line) for line in samples.read_text().splitlines()]
    return {
        "code": report.exit_code,
        "results": report.results["results"]["forms"],
        "outcomes": report.results["outcomes"]["forms"],
        "answers": [row["filtered_resps"] for row in told],
        "finish": tuple(row["finish_reason"] for row in told),
        "blank": tuple(row.get("blank") for row in told),
        "thoughts": [row.get("thoughts") for row in told],
        "tokens": [count for row in told for count in row["token_counts"]],
    }


@pytest.mark.parametrize(
    ("back_end", "case"),
    [pytest.param(name, case, id=f"{name}: {case}") for name, cases in CASES.items() for case in cases],
    indirect=["back_end"],
    scope="module",
)
def test_one_score_and_one_status(back_end: BackEnd, case: Case, tmp_path: Path) -> None:
    folder = str(back_end.folder)
    hf = BackEnd(back_end.folder, "hf_text", lambda: build("hf_text", pretrained=folder, dtype="float32", device="cpu"))
    wanted, found = outcome(hf, case, tmp_path / "hf"), outcome(back_end, case, tmp_path / "engine")
    assert_is(case, wanted)
    tokens, counted = wanted.pop("tokens"), found.pop("tokens")
    assert found == wanted
    assert [count["input_tokens"] for count in counted] == [count["input_tokens"] for count in tokens]
    thinks = any(wanted["thoughts"])
    for count, local in zip(counted, tokens, strict=True):
        if not (thinks and case.ended):  # a model that thinks gets no stops there, and writes on to its own end
            assert count["output_tokens"] == local["output_tokens"]
        if back_end.name == "vllm" or not thinks:
            assert count["reasoning_tokens"] == local["reasoning_tokens"]
        else:  # a server counts no tags, if it counts thoughts at all
            assert count["reasoning_tokens"] is None or 0 < count["reasoning_tokens"] <= local["reasoning_tokens"]


def assert_is(case: Case, found: dict[str, Any]) -> None:
    """The outcome is the one that the case states."""
    assert (found["code"], found["results"]["exact_match,last"]) == (0, case.score)
    assert (found["finish"], found["blank"]) == (case.finish, case.blank)
    assert [bool(thoughts) for thoughts in found["thoughts"]] == [case not in PLAIN] * DOCUMENTS
    cut = case.blank.count(CUT)
    outcomes = found["outcomes"]
    counts = {name: outcomes[name] for name in ("scored", "failed", "blank", "in_thought", "truncated")}
    assert counts == {"scored": DOCUMENTS, "failed": 0, "blank": cut, "in_thought": cut, "truncated": cut}
    assert outcomes.get("stops", {}).get("ended") == case.ended
