"""``lmms-eval power``, and ``--power-analysis`` of an evaluation: how many documents a paired comparison needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lmms_eval.cli.arguments import TaskSources, add_catalogue_flags, command_parser
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import LmmsEvalError
from lmms_eval.stats.power import PowerQuestion, power_analysis
from lmms_eval.utils.arguments import comma_list

if TYPE_CHECKING:
    from lmms_eval.api.task import Task
    from lmms_eval.config import RunConfig


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("power", "how many documents a paired comparison of two models needs")
    for name, default in (("effect-size", 0.03), ("alpha", 0.05), ("power", 0.8), ("correlation", 0.5)):
        names = dict.fromkeys((f"--{name}", f"--{name.replace('-', '_')}"))
        parser.add_argument(*names, type=float, default=default, metavar="X", help="default: %(default)s")
    for side in "ab":
        text = f"standard deviation of model {side.upper()}'s scores; default: the other one, or 0.5"
        parser.add_argument(f"--std-{side}", f"--std_{side}", type=float, metavar="X", help=text)
    parser.add_argument("--tasks", default="", metavar="TASK[,TASK]", help="say for each task whether it is enough")
    add_catalogue_flags(parser)
    given = parser.read(arguments)
    question = PowerQuestion(given.effect_size, given.std_a, given.std_b, given.alpha, given.power, given.correlation)
    tasks = comma_list(given.tasks)
    emit(power_lines(question, tasks, TaskSources.of_flags(given)))
    return 0


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
    ]
    for task in _loaded(tasks, source or TaskSources()) if tasks else ():
        found = power_analysis(question, len(task))
        is_enough = found.current_n is not None and found.current_n >= found.min_n
        lines += [
            "",
            f"Task {task.name}",
            f"  n: {found.current_n}",
            f"  power: {found.current_power}",
            f"  minimum detectable difference: {found.min_detectable_effect}",
            f"  {'sufficient' if is_enough else f'not sufficient: {found.min_n} documents are needed'}",
        ]
    return lines


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
