"""Text of a dry run: tasks, totals, price and time."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_eval.preview.earlier import Earlier
from lmms_eval.preview.measure import Lens
from lmms_eval.preview.summary import TaskForecast, size_text
from lmms_eval.utils.prices import Spending, Tariffs


def forecast_lines(tasks: Sequence[TaskForecast], lens: Lens, tariffs: Tariffs | None, earlier: Earlier) -> list[str]:
    """Describe each task, then all together."""
    sends = lens.form.wire is not None
    lines = ["dry run: nothing is asked", f"text is counted in {lens.ruler.unit}: {lens.ruler.source}", ""]
    for task in tasks:
        lines += task.lines(lens.ruler.unit, sends)
    lines += ["", f"in all: {_sum(tasks, 'requests'):,} requests, {_sum(tasks, 'length'):,} {lens.ruler.unit} of text"]
    if sends:
        lines[-1] += f", {size_text(_sum(tasks, 'nbytes'))} to be sent"
    lines += [*_price(tasks, lens, tariffs, earlier), *_time(tasks, earlier)]
    broken = sum(len({doc_id for doc_id, _ in task.faults}) for task in tasks)
    lines.append(f"broken: {broken:,} documents (exit code 2)" if broken else "nothing is broken")
    return lines


def _sum(tasks: Sequence[TaskForecast], name: str) -> int:
    return sum(int(getattr(task, name)) for task in tasks)


def _price(tasks: Sequence[TaskForecast], lens: Lens, tariffs: Tariffs | None, earlier: Earlier) -> list[str]:
    if tariffs is None:
        return ["price not known: give a table with --prices FILE (docs/before_the_run.md)"]
    tariff = tariffs.model
    pictures, seconds = _sum(tasks, "pictures_sent"), sum(task.seconds for task in tasks)
    tokens, requests = lens.ruler.tokens(_sum(tasks, "length")), _sum(tasks, "requests")
    asked = tariff.cost(Spending(tokens, pictures=pictures, audio_seconds=seconds))
    answered = tariff.cost(Spending(output_tokens=_sum(tasks, "new_tokens")))
    about = "" if lens.ruler.is_exact else "about "
    without = ", tokens of media not counted" if pictures or seconds else ""
    lines = [
        f"price: {about}{tariff.shown(asked)} for the input{without}, at most {tariff.shown(answered)} for the output "
        f"({tariff.source})"
    ]
    if earlier.input_tokens is not None and earlier.output_tokens is not None:
        spent = Spending(round(requests * earlier.input_tokens), round(requests * earlier.output_tokens))
        lines.append(
            f"price by {earlier.runs} earlier runs of the model: about {tariff.shown(tariff.cost(spent))} "
            f"({earlier.input_tokens:,.0f} tokens in and {earlier.output_tokens:,.0f} out a request)"
        )
    if _sum(tasks, "judge_questions"):
        lines.append("the judge is not in the price: how long its prompts are depends on the answers")
    return lines


def _time(tasks: Sequence[TaskForecast], earlier: Earlier) -> list[str]:
    if earlier.seconds is None:
        return ["time not known: the output folder holds no earlier run of the model"]
    left = max(0, _sum(tasks, "requests") - _sum(tasks, "held"))
    return [f"time by {earlier.runs} earlier runs of the model: about {_duration(left * earlier.seconds)}"]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
