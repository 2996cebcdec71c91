"""``lmms-eval milebench``: the benchmark's stand-alone scripts (scoring, collecting scores) and a report."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lmms_eval.cli.arguments import command_parser, run_action
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import DataError, UsageError

OK, HAS_ERRORS, WITHHELD = 0, 2, 3


def run(arguments: Sequence[str]) -> int:
    return run_action("milebench", ACTIONS, arguments)


def evaluate(words: Sequence[str]) -> int:
    """Score the predictions in a model's folder, of one data set or of all.

    Raises ``UsageError`` if the folder holds no predictions.
    """
    parser = command_parser("milebench evaluate", "score pred.json files; writes eval.json and others there")
    parser.add_argument(
        "--data-dir", "--data_dir", required=True, type=Path, metavar="DIR", help="folder of the data set"
    )
    parser.add_argument(
        "--dataset", metavar="NAME", help="one data set of the benchmark; default: all in the result folder"
    )
    parser.add_argument(
        "--result-dir",
        "--result_dir",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder of one model's results, such as outputs/MODEL",
    )
    parser.add_argument("--adv", action="store_true", help="the predictions answer the adversarial annotations")
    parser.add_argument(
        "--allow_partial", "--allow-partial", action="store_true",
        help="score even if samples are missing or failed, and state how many",
    )  # fmt: skip
    given = parser.parse_args(list(words))

    from lmms_eval.tasks.milebench.facts import datasets
    from lmms_eval.tasks.milebench.submission import PREDICTIONS

    if given.dataset:
        names = [given.dataset]
    else:
        there = sorted(path.parent.name for path in given.result_dir.glob(f"*/{PREDICTIONS}"))
        if not there:
            raise UsageError(
                f"no folder with a {PREDICTIONS} in {given.result_dir}; --result-dir names one model's folder"
            )
        # The benchmark's own data sets come first, in its order.
        names = [name for name in datasets() if name in there] + [name for name in there if name not in datasets()]
    codes = [_evaluate_one(name, given) for name in names]
    if len(codes) > 1 and any(codes):
        complain(f"{sum(code != OK for code in codes)} of {len(codes)} data sets have no new result (see above)")
    return HAS_ERRORS if HAS_ERRORS in codes else max(codes)


def _evaluate_one(name: str, given: argparse.Namespace) -> int:
    from lmms_eval.tasks.milebench import reference, standalone, submission

    folder: Path = given.result_dir / name
    path = folder / submission.PREDICTIONS
    try:
        annotation = reference.load_reference(given.data_dir, name, given.adv)
        predictions = submission.read_predictions(path)
        found = standalone.evaluate_dataset(annotation, str(path), predictions, given.allow_partial)
        if not (given.allow_partial and found.result.n_scored) and found.failures:
            hint = "--allow_partial scores the others" if found.result.n_scored else "no sample is left to score"
            complain(
                f"error: {name}: {len(found.failures)} samples of {found.where} failed: {found.failure_text()}; {hint}"
            )
            return WITHHELD
        standalone.write_evaluation(found, folder, submission.fingerprint(path))
    except DataError as error:
        complain(f"error: {name}: {error}")
        return HAS_ERRORS
    emit(f"{given.result_dir.absolute().name}:  {name}:  {found.result.as_eval()}")
    for warning in found.warnings:
        complain(f"warning: {name}: {warning}")
    if found.failures:
        complain(f"warning: {name}: {len(found.failures)} samples failed: {found.failure_text()}")
    if found.coverage < 1:
        complain(f"warning: {name}: scored {found.result.n_scored} of {found.n_samples} samples ({found.coverage:.1%})")
    return OK


def score(words: Sequence[str]) -> int:
    """Collect the results of several models into one table."""
    from lmms_eval.tasks.milebench.collection import RESULT_CSV, RESULT_JSON, collect, write_collection

    parser = command_parser("milebench score", "collect eval.json files into result.json and result.csv")
    parser.add_argument(
        "--result-dir",
        "--result_dir",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder with a folder for each model",
    )
    parser.add_argument(
        "--models", required=True, nargs="+", metavar="MODEL", help="folders of the models, in the order of the table"
    )
    given = parser.parse_args(list(words))
    models, absent = collect(given.result_dir, given.models)
    write_collection(models, given.result_dir)
    for model, names in absent.items():
        complain(f"notice: {model} has no result of {len(names)} data sets: {', '.join(names)}")
    emit(f"results: {given.result_dir / RESULT_JSON}, {given.result_dir / RESULT_CSV}")
    return OK


def report(words: Sequence[str]) -> int:
    """Print the paper's numbers of one model."""
    from lmms_eval.tasks.milebench.report import report_of

    parser = command_parser("milebench report", "groups and overall figures of a model, from what evaluate wrote")
    parser.add_argument(
        "--result-dir",
        "--result_dir",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder of one model's results, such as outputs/MODEL",
    )
    parser.add_argument(
        "--output_dir",
        "--output-dir",
        type=Path,
        metavar="DIR",
        help="write tables and pictures to DIR/MODEL_milebench",
    )
    given = parser.parse_args(list(words))
    found = report_of(given.result_dir, given.output_dir)
    emit(found.text)
    for file in found.files:
        emit(f"file: {file}")
    return OK


ACTIONS: Mapping[str, Callable[[Sequence[str]], int]] = {"evaluate": evaluate, "score": score, "report": report}
