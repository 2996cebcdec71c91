"""MMIE: whole runs of the stand-alone script, with the canned replies in place of a judge's model."""

from __future__ import annotations

import builtins
import contextlib
import io
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.cli import mmie
from lmms_eval.errors import LmmsEvalError
from lmms_eval.judges.internvl.loading import ChatJudge, InternVLOptions
from lmms_eval.judges.providers import Judge
from lmms_eval.models.chat_form.internvl import InternVLForm
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks.mmie.judge_prompts import JudgeTexts, built_in
from tests.parity.vectors import PASSED, Verdict, deviates, failed, path_adapter

SPELLING = "mmie_readme_flags_are_accepted"
SPELLINGS = {"--input_file": "--input_name", "--output_file": "--output_name"}
"""Flags as the reference's README has them, and as its script takes them."""
NO_CATEGORY = "belongs to no category"
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
        number = re.search(r"\[#(\d+)\]", question)  # questions without a number come in their order
        reply = self.replies[number[1] if number else str(len(self.calls) - 1)]
        failure = getattr(builtins, reply, None)
        if isinstance(failure, type) and issubclass(failure, Exception):
            raise failure(f"the canned reply is {reply}")
        return reply


def told_apart(question: str, prompts: JudgeTexts) -> tuple[str, str]:
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
    """What the judge was called with; equal neighbours, which are one question asked again, are one."""
    error: str
    unscored: list[int]
    """Positions of the records for which no reply came."""


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
    model = ChatJudge(InternVLForm(canned, None, {}, {}), InternVLOptions("canned"))
    given = mmie.parser().parse_args(list(argv))
    printed, complaints = io.StringIO(), io.StringIO()
    code, error = 1, ""
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
        try:
            code = mmie.judge_file(given, lambda: Judge(model, "canned", "internvl"))
        except LmmsEvalError as refused:
            error = str(refused)
    calls = [call for call, _ in itertools.groupby(canned.calls)]
    summary = Path(given.output_dir, given.output_name).with_suffix(".summary.json")
    unscored = [one["position"] for one in read_json(summary)["unscored"]] if summary.exists() else []
    return Outcome(code, printed.getvalue(), calls, error or complaints.getvalue(), unscored)


def report(printed: str) -> dict[str, str]:
    found = {}
    for line in printed.splitlines():
        name, separator, value = line.partition(": ")
        if separator and name in LINES:
            found[LINES[name]] = value
    return found


def same_files(expected: Path, made: Path) -> list[Verdict]:
    """One verdict for each expected file; no file of the benchmark's own beyond them may be there."""
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
    """Report, exit code, judge calls and files; the corrected ones where there are such."""
    suffix = "_wanted" if (case / "expected_wanted.json").exists() else ""
    wanted, replies = read_json(case / f"expected{suffix}.json"), read_json(case / "canned_feedback.json")
    with copied(case) as folder:
        found = run(wanted["argv"], replies)
        if wanted["error"] == "SystemExit":
            return [spelling_verdict(case, wanted["argv"], replies, found)]
        if wanted["error"] is not None:
            return [refusal_verdict(case, wanted, found)]
        verdicts = [run_verdict(wanted, found), *same_files(case / f"expected{suffix}_files", folder)]
    rule = wanted.get("deviation")
    return [deviates(rule) if rule and verdict == PASSED else verdict for verdict in verdicts]


def run_verdict(wanted: Mapping[str, Any], found: Outcome) -> Verdict:
    """A run that went to its end."""
    shown = {
        "report": report(found.printed),
        "calls": found.calls,
        "exit_code": found.code,
        "unscored": found.unscored,
        "missing_messages": found.printed.count(" not found!"),
        "unrecognised_messages": found.error.count(NO_CATEGORY),
    }
    right = {"exit_code": mmie.OK, "unscored": [], **wanted}
    wrong = [f"{name}: found {ours!r}, not {right[name]!r}" for name, ours in shown.items() if ours != right[name]]
    return failed("; ".join(wrong)) if wrong else PASSED


def spelling_verdict(case: Path, argv: Sequence[str], replies: dict[str, str], found: Outcome) -> Verdict:
    """The flags at which the reference stops are its README's; with them the run is as with the script's own."""
    with copied(case):
        right = run([SPELLINGS.get(word, word) for word in argv], replies)
    is_spelled = not set(argv).isdisjoint(SPELLINGS) and found == right and found.code == mmie.OK
    return deviates(SPELLING) if is_spelled else failed(f"ended with {found.code}: {found.error}")


def refusal_verdict(case: Path, wanted: Mapping[str, Any], found: Outcome) -> Verdict:
    """Where the reference stops, a record is named that it had not asked about, and nothing is asked about it."""
    named = [int(number) for number in re.findall(r"error: record (\d+)", found.error)]
    n_asked = len(wanted["calls"])
    is_refused = (
        found.code == mmie.HAS_ERRORS
        and bool(named)
        and min(named) >= n_asked
        and found.calls[:n_asked] == wanted["calls"]
        and len(found.calls) + len(named) <= len(read_json(input_file(case, wanted["argv"])))
        and found.error.count(NO_CATEGORY) == wanted["unrecognised_messages"]
    )
    return PASSED if is_refused else failed(f"ended with {found.code}, {len(found.calls)} calls: {found.error}")


def input_file(case: Path, argv: Sequence[str]) -> Path:
    given = mmie.parser().parse_args(list(argv))
    return case / given.input_dir / given.input_name
