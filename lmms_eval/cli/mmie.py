"""``lmms-eval mmie``: the benchmark's stand-alone script: a judge scores a file of answers."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.cli.arguments import CommandParser, command_parser, run_action
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import UsageError
from lmms_eval.tasks.mmie.facts import CATEGORIES

if TYPE_CHECKING:
    from lmms_eval.judges import Judge, JudgeOptions
    from lmms_eval.tasks.mmie.judge_prompts import JudgeTexts

OK, HAS_ERRORS, WITHHELD = 0, 2, 3
DEFAULT_MODEL = "MMIE/MMIE-Score"
LOCAL = ("internvl", "hf", "vllm", "sglang")
"""Judges that can run code of a checkpoint."""
SHOWN_NUMBERS = (
    "scored", "unparsable", "unscored", "skipped", "mean", "percent", "strict_mean", "strict_percent",
)  # fmt: skip
SHOWN = 20
"""Lines of one kind that are printed; the summary file has all."""


def run(arguments: Sequence[str]) -> int:
    return run_action("mmie", ACTIONS, arguments)


def judge(words: Sequence[str]) -> int:
    """Judge a file of answers and return the exit code."""
    given = parser().parse_args(list(words))

    def open_it() -> Judge:
        from lmms_eval.judges import open_judge

        return open_judge(judge_options(given))

    return judge_file(given, open_it)


def parser() -> CommandParser:
    """Return the parser with both spellings of the benchmark's flags, and further flags."""
    made = command_parser("mmie judge", "a judge scores the answers in a file from 0 to 6")
    add = made.add_argument
    add("--model_path", "--model-path", metavar="M", help=f"InternVL checkpoint that judges; default: {DEFAULT_MODEL}")
    add(
        "--input_dir",
        "--input-dir",
        default="./eval_inputs",
        metavar="DIR",
        help="folder with the file of answers and its pictures; default: %(default)s",
    )
    add("--input_name", "--input_file", "--input-name", "--input-file", default="data.json", metavar="NAME",
        help="name of the file of answers, a JSON list of records; default: data.json")  # fmt: skip
    add(
        "--data_root",
        "--data-root",
        metavar="DIR",
        help="folder of the data set, as a further place to look for pictures",
    )
    add(
        "--output_dir",
        "--output-dir",
        default="./eval_outputs",
        metavar="DIR",
        help="folder for the results; default: %(default)s",
    )
    add("--output_name", "--output_file", "--output-name", "--output-file", default="eval_result.json", metavar="NAME",
        help="file name of the results; default: %(default)s")  # fmt: skip
    add("--save_step", "--save-step", type=int, default=10, metavar="N",
        help="save after every N judgements; default: %(default)s")  # fmt: skip
    add(
        "--judge_model",
        "--judge-model",
        metavar="NAME",
        help="model that judges in place of --model_path: NAME or PROVIDER:NAME",
    )
    add("--judge_base_url", "--judge-base-url", metavar="URL", help="address of the judge's server")
    add("--judge_args", "--judge-args", default="", metavar="K=V,...", help="further arguments of the judge's back end")
    add("--judge_prompts", "--judge-prompts", type=Path, metavar="FILE",
        help="Python file with the prompts for the judge, read but never run; default: our own wording")  # fmt: skip
    add("--judge_retries", "--judge-retries", type=int, default=0, metavar="N",
        help="how often a reply without a score is asked again; default: %(default)s")  # fmt: skip
    add("--trust_remote_code", "--trust-remote-code", action="store_true",
        help="run the code that the checkpoint ships")  # fmt: skip
    add("--device", metavar="NAME", help="device of a local judge: auto, cpu, cuda:0, ...")
    add("--view", choices=("official", "full_text"), default="official",
        help="official: cut answers after the third picture, as the benchmark does; full_text: cut none")  # fmt: skip
    add(
        "--max_images",
        "--max-images",
        type=int,
        default=4,
        metavar="N",
        help="skip samples with more pictures than this; default: %(default)s",
    )
    add(
        "--strict_images",
        "--strict-images",
        action="store_true",
        help="count a record as failed if one of its pictures is missing",
    )
    add("--category_by", "--category-by", choices=("id", "name"), default="id",
        help="what decides the category if a record's id and category disagree")  # fmt: skip
    add("--force", action="store_true", help="judge everything again, also what an earlier start has finished")
    return made


def judge_options(given: argparse.Namespace) -> JudgeOptions:
    """Return the judge that the flags name. Raises ``UsageError`` if the flags name two judges."""
    from lmms_eval.judges import JudgeOptions
    from lmms_eval.utils import simple_parse_args_string

    arguments: dict[str, Any] = dict(simple_parse_args_string(given.judge_args))
    model = given.judge_model
    if not (given.judge_model or given.judge_base_url):
        model = f"internvl:{given.model_path or DEFAULT_MODEL}"
    elif given.model_path:
        raise UsageError("--model_path and --judge_model or --judge_base_url name two judges: give one of them")
    options = JudgeOptions(model, given.judge_base_url, arguments, given.device)
    if given.trust_remote_code and options.provider not in LOCAL:
        raise UsageError(
            f"--trust_remote_code is for a judge in this process ({', '.join(LOCAL)}), not {options.model}"
        )
    if given.trust_remote_code:
        arguments["trust_remote_code"] = True
    return options


def judge_file(given: argparse.Namespace, open_it: Callable[[], Judge]) -> int:
    """Judge the answers that are not finished, write and report the results, and return the exit code.

    Raises:
        DataError: the input or the prompts cannot be used, or the output cannot be written.
        ModelError: the judge cannot be built.
    """
    from lmms_eval.storage.atomic import read_json
    from lmms_eval.tasks.mmie.judge_prompts import built_in, load_prompts
    from lmms_eval.tasks.mmie.standalone import read_input
    from lmms_eval.tasks.mmie.view import ViewOptions, in_folder

    for name, least in (("save_step", 1), ("judge_retries", 0), ("max_images", 1)):
        if getattr(given, name) < least:
            raise UsageError(f"--{name} must be at least {least}, not {getattr(given, name)}")
    prompts = load_prompts(given.judge_prompts) if given.judge_prompts else built_in()
    path = os.path.join(given.input_dir, given.input_name)
    find = in_folder(given.input_dir, given.data_root)
    view = ViewOptions(given.view, given.max_images)
    data = read_input(read_json(Path(path)), path, find, view, given.strict_images, given.category_by == "name")
    for sample in data.everyone():
        for name in sample.view.missing:
            emit(f"{name} not found!")
    from lmms_eval.tasks.mmie.judge_file import FileJudging  # it imports what asks models

    judging = FileJudging(data, prompts, Path(given.output_dir, given.output_name), given.save_step)
    summary, judge = judging.finish(open_it, given.judge_retries, given.force)
    _show_scores(given, summary, judge, prompts)
    emit([f"feedback: {judging.output}", f"scores: {judging.scores}", f"summary: {judging.summary}"])
    _list("warning", summary["warnings"])
    cut = [f"{_name(one)}: {one['texts']} texts and {one['images']} pictures not shown" for one in summary["cut"]]
    _list("cut", cut)
    for outcome in ("skipped", "unparsable", "unscored"):
        _list(outcome, [f"{_name(one)}: {one['reason']}" for one in summary[outcome]])
    _list("error", [f"{_name(one)}: {one['error']}" for one in summary["failed"]])
    if summary["failed"]:
        return HAS_ERRORS
    return WITHHELD if summary["unscored"] else OK


def _show_scores(given: argparse.Namespace, summary: Mapping[str, Any], judge: str, prompts: JudgeTexts) -> None:
    """Print the benchmark's own lines, then all numbers."""
    from lmms_eval.utils.terminal import Column, markdown_table

    rows: Mapping[str, Mapping[str, Any]] = summary["categories"]
    overall = rows.get("AVG", {})
    emit([f"File: {given.input_name}", f"Sample size: {overall.get('scored', 0)}"])
    emit([f"{name}: {rows.get(name, {}).get('official')}" for name in ("AVG", *CATEGORIES)])
    source = "official" if prompts.is_official else prompts.source
    emit(f"\n{prompts.metric}: judge {judge}, prompts {source}; percent = mean / 6 x 100")
    columns = [Column("", tuple(rows), is_text=True)]
    for name in SHOWN_NUMBERS:
        values = [row[name] for row in rows.values()]
        cells = (
            "N/A" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value) for value in values
        )
        columns.append(Column(name, tuple(cells)))
    if rows:
        emit(markdown_table(columns))


def _name(entry: Mapping[str, Any]) -> str:
    return f"record {entry['position']} ({entry['id']!r})"


def _list(kind: str, lines: Sequence[str]) -> None:
    for line in lines[:SHOWN]:
        complain(f"{kind}: {line}")
    if len(lines) > SHOWN:
        complain(f"{kind}: {len(lines) - SHOWN} more, in the summary file")


ACTIONS: Mapping[str, Callable[[Sequence[str]], int]] = {"judge": judge}
