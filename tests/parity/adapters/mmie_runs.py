"""MMIE: whole runs of the stand-alone script, with the canned replies in place of a judge's model."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.cli import mmie
from lmms_eval.errors import LmmsEvalError
from lmms_eval.judges.internvl.chat import ChatJudge, ChatModel
from lmms_eval.judges.internvl.options import InternVLOptions
from lmms_eval.judges.providers import Judge
from lmms_eval.tasks.mmie.judge_prompts import JudgePrompts, built_in
from tests.parity.vectors import PASSED, Verdict, deviates, failed, path_adapter

SPELLING = "mmie_readme_flags_are_accepted"
LINES = {"Sample size": "sample_size", "File": "file", **{name: name for name in ("AVG", "SA", "PBL", "MSR")}}


@dataclass
class Canned:
    """Replies by the number in the question, and what it was called with."""

    replies: dict[str, str]
    calls: list[dict[str, Any]] = field(default_factory=list)

    @property
    def dtype(self) -> Any:
        import torch

        return torch.bfloat16

    def chat(
        self,
        tokenizer: Any,
        pixel_values: Any,
        question: str,
        generation_config: dict[str, Any],
        *,
        num_patches_list: list[int],
    ) -> str:
        category, tail = told_apart(question, built_in())
        self.calls.append(
            {
                "system_prompt": category,
                "prompt_tail": tail,
                "num_patches_list": num_patches_list,
                "pixel_values_shape": None if pixel_values is None else list(pixel_values.shape),
                "pixel_values_dtype": None if pixel_values is None else str(pixel_values.dtype),
                "generation_config": generation_config,
            }
        )
        return self.replies[re.findall(r"\[#(\d+)\]", question)[0]] if "[#" in question else self._next()

    def _next(self) -> str:
        """Questions without a number come in their order."""
        return self.replies[str(len(self.calls) - 1)]


def told_apart(question: str, prompts: JudgePrompts) -> tuple[str, str]:
    """Whose text stands in front, and what follows it."""
    category = next(tag for tag, text in prompts.systems.items() if question.startswith(text))
    tail = question.removeprefix(prompts.systems[category])
    header = "\n### Correct Answer\n"
    return category, tail.replace(header + prompts.lead_in, header + "<LEAD-IN>")


@dataclass(frozen=True)
class Outcome:
    code: int
    printed: str
    calls: list[dict[str, Any]]
    error: str


@contextlib.contextmanager
def copied(case: Path) -> Iterator[Path]:
    """The case's inputs in a folder of its own, which is the current one."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(case / "eval_inputs", Path(name) / "eval_inputs")
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(here)


def run(argv: Sequence[str], replies: dict[str, str]) -> Outcome:
    canned = Canned(replies)
    model = ChatJudge(ChatModel(canned, None), InternVLOptions("canned"))
    given = mmie.parser().parse_args(list(argv))
    printed, complaints = io.StringIO(), io.StringIO()
    code, error = 1, ""
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
        try:
            code = mmie.judge_file(given, lambda: Judge(model, "canned", "internvl"))
        except LmmsEvalError as refused:
            error = str(refused)
    return Outcome(code, printed.getvalue(), canned.calls, error or complaints.getvalue())


def report(printed: str) -> dict[str, str]:
    found = {}
    for line in printed.splitlines():
        name, separator, value = line.partition(": ")
        if separator and name in LINES:
            found[LINES[name]] = value
    return found


def same_files(case: Path, made: Path) -> list[Verdict]:
    """One verdict for each expected file; no file of the benchmark's own beyond them may be there."""
    expected = case / "expected_files"
    verdicts = []
    for path in sorted(expected.rglob("*.json")):
        name = path.relative_to(expected)
        there = made / name
        is_same = there.is_file() and there.read_bytes() == path.read_bytes()
        verdicts.append(PASSED if is_same else failed(f"{name} is missing or differs"))
        temporary = there.parent / "temp" / there.name
        if there.parent.name != "temp" and temporary.exists() != (path.parent / "temp" / path.name).exists():
            verdicts.append(failed(f"{temporary.relative_to(made)} is there, or is missing"))
    return verdicts


@path_adapter("mmie/e2e/*")
def check_run(case: Path) -> Sequence[Verdict]:
    """Report, judge calls and files. A run that stops with an error in the reference must name the record here."""
    expected = json.loads((case / "expected.json").read_text("utf-8"))
    replies = json.loads((case / "canned_feedback.json").read_text("utf-8"))
    with copied(case) as folder:
        found = run(expected["argv"], replies)
        if expected["error"] == "SystemExit":
            is_judged = found.code == mmie.OK and len(found.calls) == 1
            return [deviates(SPELLING) if is_judged else failed(f"ended with {found.code}: {found.error}")]
        if expected["error"] is not None:
            is_refused = found.code == mmie.HAS_ERRORS and "error: record 0" in found.error and not found.calls
            return [PASSED if is_refused else failed(f"ended with {found.code}: {found.error}")]
        shown = report(found.printed)
        wrong = [
            f"{name}: found {ours!r}"
            for name, ours, theirs in (
                ("report", shown, expected["report"]),
                ("calls", found.calls, expected["calls"]),
                ("code", found.code, mmie.OK),
                ("not found", found.printed.count(" not found!"), expected["missing_messages"]),
            )
            if ours != theirs
        ]
        return [failed("; ".join(wrong)) if wrong else PASSED, *same_files(case, folder)]
