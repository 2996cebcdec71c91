"""``lmms-eval power``, and ``--power-analysis`` of an evaluation: how many documents a paired comparison needs.

With ``--from RUN`` it finds, from the run's split of the variance, how many repeats are best for a price; with
``--until`` it simulates how many documents a run asks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.cli.arguments import TaskSources, add_catalogue_flags, command_parser
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.stats.power import PowerQuestion, RepeatPlan, asked_until, power_analysis, repeat_plans
from lmms_eval.utils.arguments import comma_list

if TYPE_CHECKING:
    from lmms_eval.api.task import Task
    from lmms_eval.config import RunConfig


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("power", "how many documents a paired comparison of two models needs")
    for name, default, text in (
        ("effect-size", 0.03, "difference of the scores to detect"),
        ("alpha", 0.05, "significance level of the test"),
        ("power", 0.8, "probability of detecting the difference"),
        ("correlation", 0.5, "correlation of the two models' scores"),
    ):
        names = dict.fromkeys((f"--{name}", f"--{name.replace('-', '_')}"))
        parser.add_argument(*names, type=float, default=default, metavar="X", help=f"{text}; default: %(default)s")
    for side in "ab":
        text = f"standard deviation of model {side.upper()}'s scores; default: the other one, or 0.5"
        parser.add_argument(f"--std-{side}", f"--std_{side}", type=float, metavar="X", help=text)
    parser.add_argument(
        "--tests",
        type=int,
        default=1,
        metavar="M",
        help="number of tests that are corrected together (Holm); default: %(default)s",
    )
    parser.add_argument(
        "--clusters",
        default="1",
        metavar="SIZE[:ICC]",
        help="documents in a cluster, and the correlation of scores within it (ICC); default: 1, no clusters",
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="RUN",
        help="compute the best number of repeats from this run, which has repeats",
    )
    parser.add_argument(
        "--price",
        default="0:1",
        metavar="QUESTION:ANSWER",
        help="with --from: cost of asking a question, and of each answer; default: %(default)s",
    )
    parser.add_argument("--until", metavar="RULE", help="simulate how many documents a run with --until RULE asks")
    parser.add_argument("--documents", type=int, metavar="N", help="with --until: number of documents of the task")
    parser.add_argument(
        "--score",
        type=float,
        default=0.5,
        metavar="X",
        help="with --until: true score of the model; default: %(default)s",
    )
    parser.add_argument(
        "--tasks",
        default="",
        metavar="TASK[,TASK]",
        help="report for each of these tasks whether it has enough documents",
    )
    add_catalogue_flags(parser)
    given = parser.read(arguments)
    size, icc = _numbers("--clusters", given.clusters, "SIZE[:ICC]", (1.0, 1.0))
    question = PowerQuestion(
        given.effect_size, given.std_a, given.std_b, given.alpha, given.power, given.correlation,
        given.tests, size, icc,
    )  # fmt: skip
    tasks = comma_list(given.tasks)
    if given.until is not None:
        emit(until_lines(given.until, given.documents, given.score, given.source or given.tasks))
    elif given.source is None:
        emit(power_lines(question, tasks, TaskSources.of_flags(given)))
    else:
        prices = _numbers("--price", given.price, "QUESTION:ANSWER", (0.0, 1.0))
        emit(repeat_lines(question, given.source, tasks, prices))
    return 0


def _numbers(flag: str, text: str, form: str, default: tuple[float, float]) -> tuple[float, float]:
    """Read one or two numbers that a colon separates. Raises ``UsageError``."""
    parts = text.split(":")
    try:
        found = [float(part) for part in parts]
    except ValueError:
        found = []
    if not 1 <= len(found) <= 2:
        raise UsageError(f"power: {flag} {text}: write it as {form}, with numbers")
    return found[0], found[1] if len(found) > 1 else default[1]


def report_for_config(config: RunConfig) -> list[str]:
    """Return the report for ``--power-analysis``."""
    question = PowerQuestion(
        config.effect_size, config.std_a, config.std_b, config.alpha, config.power, config.correlation
    )
    return power_lines(question, config.names("tasks"), TaskSources.of_config(config))


def power_lines(question: PowerQuestion, tasks: Sequence[str] = (), source: TaskSources | None = None) -> list[str]:
    """Return the report: parameters, the number of documents needed, and a part for each task.

    A task that cannot be found or loaded is left out, with a warning on standard error. Raises ``UsageError`` if a
    parameter is out of range.
    """
    result = power_analysis(question)
    lines = [
        "Power analysis (paired comparison of two models)",
        f"  difference to detect: {result.effect_size:g}",
        f"  standard deviations: {result.std_a:g}, {result.std_b:g}",
        f"  correlation: {result.correlation:g}",
        f"  significance level: {result.alpha:g}",
        f"  wanted power: {result.power:g}",
        f"  minimum n: {result.min_n}",
        *_conditions(question),
    ]
    if question.cluster_size > 1:
        lines.append(f"  minimum clusters: {math.ceil(result.min_n / question.cluster_size)}")
    for task in _loaded(tasks, source or TaskSources()) if tasks else ():
        found = power_analysis(question, len(task))
        is_enough = found.current_n is not None and found.current_n >= found.min_n
        lines += [
            "",
            f"Task {task.name}",
            f"  n: {found.current_n}",
            f"  power: {found.current_power}",
            f"  smallest detectable difference ({100 * question.power:g} % power): {found.min_detectable_effect}",
            f"  {'sufficient' if is_enough else f'not sufficient: {found.min_n} documents are needed'}",
        ]
    return lines


def _conditions(question: PowerQuestion) -> list[str]:
    """Return lines about the correction for several tests and about clusters, if there are any."""
    lines = []
    if question.tests > 1:
        lines.append(f"  tests: {question.tests}, each at {question.alpha / question.tests:.4g}")
    if question.cluster_size > 1:
        lines.append(
            f"  clusters of {question.cluster_size:g}, correlation {question.icc:g}: the variance is "
            f"{question.design_effect:.4g} times that of single documents"
        )
    return lines


_SHOWN = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of repeats that are always shown."""


def repeat_lines(
    question: PowerQuestion, source: str, tasks: Sequence[str] = (), prices: tuple[float, float] = (0.0, 1.0)
) -> list[str]:
    """Return the report of ``--from``: for each task of a run, plans by the number of repeats, and the best one.

    Args:
        question: the planned comparison.
        source: the run, by its results file or folder.
        tasks: names of tasks; empty for all that have repeats.
        prices: price of a question, and of an answer to it.

    Raises:
        UsageError: the run has no repeats, or not these tasks; a parameter is out of its range.
        DataError: the run cannot be read.
    """
    found = _variances(source)
    for name in tasks:
        if name not in found:
            raise UsageError(f"power: --from {source}: no repeats of a task {name!r}; there are: {', '.join(found)}")
    lines = [
        "Repeats for a paired comparison of two models",
        f"  difference to detect: {question.effect_size:g}",
        f"  correlation of the questions' expected scores: {question.correlation:g}",
        f"  wanted power: {question.power:g} at {question.alpha:g}",
        f"  price of a question: {prices[0]:g}, of an answer: {prices[1]:g}",
        *_conditions(question),
    ]
    for name in tasks or found:
        for row, entry in found[name].items():
            drawn = float(entry["answers"]) + _judge(entry)
            plans = repeat_plans(question, float(entry["questions"]), drawn, prices)
            lines += ["", *_of_task(f"{name} {row}", entry, drawn, plans)]
    return lines


def _judge(entry: Mapping[str, Any]) -> float:
    """Return the variance of the judge's verdicts; 0 if ``answers`` includes it."""
    found = entry.get("judge")
    return float(found) if isinstance(found, int | float) else 0.0


def _of_task(name: str, entry: Mapping[str, Any], drawn: float, plans: Sequence[RepeatPlan]) -> list[str]:
    """Return the lines of one number of a run."""
    n = int(entry["n"])
    reached = [plan for plan in plans if plan.documents <= n]
    best = min(reached, key=lambda plan: (plan.price, plan.repeats), default=None)
    lines = [
        f"{name}: variance {entry['questions']:.4g} of questions, {drawn:.4g} of answers; {n} documents",
        f"{'repeats':>9}{'documents':>11}{'answers':>10}{'price':>12}",
    ]
    for plan in plans:
        if plan.repeats in _SHOWN or plan is best:
            mark = "  best" if plan is best else "" if plan.documents <= n else f"  more than {n} documents"
            lines.append(
                f"{plan.repeats:>9}{plan.documents:>11}{plan.documents * plan.repeats:>10}{plan.price:>12.6g}{mark}"
            )
    if best is None:
        lines.append(
            f"  no number of repeats is enough for {n} documents: more documents, or a greater difference, are needed"
        )
    return lines


def until_lines(rule_text: str, total: int | None, score: float, other: str = "") -> list[str]:
    """Return the report of ``--until``: how many documents a run asks before the rule holds.

    Args:
        rule_text: the rule, about right-or-wrong documents.
        total: documents of the list.
        score: their true score.
        other: the value of ``--from`` or ``--tasks``, which do not go with ``--until``.

    Raises:
        UsageError: the rule is wrong or names a baseline, the list has no length, or there are other flags.
    """
    from lmms_eval.config.convert import stopping_rules

    rules = stopping_rules(rule_text)
    if len(rules) != 1 or rules[0].number is None or rules[0].target:
        raise UsageError(f"power: --until {rule_text}: give one rule, halfwidth<=NUMBER or decided:NUMBER")
    if total is None or other:
        raise UsageError("power: --until needs --documents N, and goes with neither --from nor --tasks")
    rule, number = rules[0], rules[0].number

    def holds(low: float, high: float) -> bool:
        return (high - low) / 2 <= number if rule.kind == "halfwidth" else not low <= number <= high

    found = sorted(asked_until(total, score, holds))
    middle, late = found[len(found) // 2], found[math.ceil(0.9 * len(found)) - 1]
    early = sum(n < total for n in found)
    return [
        f"Documents until {rule.text} ({total} documents, true score {score:g})",
        f"  median: {middle} ({middle / total:.0%})",
        f"  90 % of runs: at most {late} ({late / total:.0%})",
        f"  runs that end before the last document: {early} of {len(found)} random orders",
    ]


_NEEDED = ("n", "questions", "answers")


def _variances(source: str) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the split of the variance by task and ``METRIC,FILTER`` where the answers are known."""
    from lmms_eval.results.facts import part_of, read_document
    from lmms_eval.results.files import find_run, run_path

    path = run_path(source)
    if path.is_dir():
        run = find_run(path)
        path = path if run is None else run.path
    document = read_document(path) if path.is_file() else {}
    tasks = part_of(document if isinstance(document, dict) else {}, "variance")
    known: dict[str, dict[str, Mapping[str, Any]]] = {
        name: {
            row: entry
            for row, entry in part_of(tasks, name).items()
            if isinstance(entry, dict) and all(isinstance(entry.get(key), int | float) for key in _NEEDED)
        }
        for name in tasks
    }
    found = {name: rows for name, rows in known.items() if rows}
    if not found:
        raise UsageError(
            f"power: --from {source}: no task has a variance of answers; name a run with --repeats 2 or more, or "
            "--repeat_share"
        )
    return found


def _loaded(names: Sequence[str], source: TaskSources) -> Iterator[Task]:
    from lmms_eval.api.task import TaskOptions
    from lmms_eval.tasks.selection import select_tasks

    catalogue = source.open()
    options = TaskOptions(data_root=source.data_root, run_options=source.run_options)
    for name in names:
        try:
            selected = select_tasks((name,), catalogue, options).tasks
        except LmmsEvalError as error:
            complain(f"warning: {name} is left out: {error}")
            continue
        for task in selected:
            try:
                task.load()
            except LmmsEvalError as error:
                complain(f"warning: {task.name} is left out: {error}")
                continue
            yield task
