"""``lmms-eval show``: shows a run's table, a task's breakdown, one sample, or selected samples."""

from __future__ import annotations

import base64
import io
import os
import shlex
import stat
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lmms_eval.cli.arguments import add_choice_flags, choice_of, command_parser
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import UsageError
from lmms_eval.utils.records import to_dict

if TYPE_CHECKING:
    from lmms_eval.results.run import Choice, Run


Protocol = Literal["kitty", "iterm"]
LONGEST_SIDE = 512
"""Pixels of a thumbnail's longest side."""
MOST_BYTES = 64 << 20
"""Bytes of the largest file that is opened."""
MOST_PICTURES = 8
_CHUNK = 4096
MOST_LINES = 50


def protocol(environ: Mapping[str, str], is_terminal: bool) -> Protocol | None:
    """Return how the terminal shows pictures; ``None`` if it is not known, and inside multiplexers."""
    if not is_terminal or "TMUX" in environ or environ.get("TERM", "").startswith(("screen", "tmux")):
        return None
    if "KITTY_WINDOW_ID" in environ or environ.get("TERM") == "xterm-kitty":
        return "kitty"
    return "iterm" if environ.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm") else None


def show_pictures(paths: Iterable[str]) -> None:
    """Show thumbnails of local pictures if the terminal can. Other files are skipped."""
    how = protocol(os.environ, sys.stdout.isatty())
    if how is None:
        return
    for path in list(paths)[:MOST_PICTURES]:
        if (data := thumbnail(Path(path))) is not None:
            sys.stdout.write(escape_sequence(how, data) + "\n")
    sys.stdout.flush()


def thumbnail(path: Path) -> bytes | None:
    """Return a PNG of at most ``LONGEST_SIDE`` pixels; ``None`` if the file is not a picture that can be opened."""
    from PIL import Image

    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_BYTES:
            return None
        with Image.open(path) as picture:
            picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            made = io.BytesIO()
            picture.convert("RGB").save(made, "PNG")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    return made.getvalue()


def escape_sequence(how: Protocol, png: bytes) -> str:
    """Return the terminal's escape sequence for a picture. It contains only the pixels of the file."""
    text = base64.b64encode(png).decode("ascii")
    if how == "iterm":
        return f"\x1b]1337;File=inline=1;size={len(png)}:{text}\x07"
    chunks = [text[start : start + _CHUNK] for start in range(0, len(text), _CHUNK)]
    first = ["a=T,f=100,q=2,"] + [""] * (len(chunks) - 1)
    more = [1] * (len(chunks) - 1) + [0]
    return "".join(f"\x1b_G{keys}m={flag};{chunk}\x1b\\" for keys, flag, chunk in zip(first, more, chunks, strict=True))


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("show")
    parser.add_argument(
        "run", metavar="RUN", help="run to show: output folder, results file, FOLDER/STAMP, samples file, or .runs/KEY"
    )
    parser.add_argument("task", nargs="?", default="", metavar="TASK", help="task whose scores to show by metadata")
    parser.add_argument(
        "doc",
        nargs="?",
        default="",
        metavar="DOC",
        help="number of a document (doc_id) of the task, to show its sample",
    )
    add_choice_flags(parser)
    parser.add_argument("--limit", type=_count, metavar="N", help=f"list at most N samples; default: {MOST_LINES}")
    parser.add_argument(
        "--metric", default="", metavar="NAME", help="metric of the scores by metadata; default: the task's first"
    )
    parser.add_argument("--filter", metavar="NAME", help="filter pipeline whose answers to show; default: the first")
    parser.add_argument(
        "--audit", action="store_true", help="show how answers were parsed, and what other rules would give"
    )
    parser.add_argument("--latex", action="store_true", help="print the table of the run as LaTeX")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text; of samples, one line each")
    given = parser.read(arguments)
    from lmms_eval.results.run import load

    if given.doc and (given.where or given.ids or given.audit):
        raise UsageError("show RUN TASK DOC shows one sample: leave --where, --ids and --audit out")
    if given.latex and (given.task or given.json or given.where or given.ids or given.audit or given.limit is not None):
        raise UsageError("show RUN --latex prints the run's table: leave tasks, samples and --json out")
    if _show_several(given):
        return 0
    found = load(given.run)
    if given.task:
        found.task(given.task)
    chosen = choice_of(given, found)
    for note in found.notes:
        complain(note)
    if given.doc:
        _show_sample(given, found)
    elif given.audit:
        from lmms_eval.results.audit import audit, audit_text
        from lmms_eval.results.sample import json_cell

        tasks = [found.task(given.task)] if given.task else list(found.tasks.values())
        audits = [one for task in tasks for one in audit(found, task, chosen)]
        emit(json_cell([to_dict(one) for one in audits]) if given.json else audit_text(audits))
    elif given.where or given.ids or given.limit is not None:
        _show_samples(given, found, chosen)
    elif given.task:
        _show_breakdown(given, found)
    else:
        _show_run(given, found)
    return 0


def _show_several(given: Namespace) -> bool:
    """List the runs of a folder that holds several of them, unless the command asks for something of one run."""
    folder = Path(given.run).expanduser()
    wants_one = given.task or given.latex or given.where or given.ids or given.audit or given.limit is not None
    if wants_one or not folder.is_dir():
        return False
    from lmms_eval.results.listing import listed_runs, runs_table
    from lmms_eval.results.sample import json_cell

    runs = listed_runs(folder)
    if len(runs) < 2:
        return False
    hint = f"for one run: lmms-eval show {shlex.quote(given.run.rstrip('/'))}/RUN"
    emit(json_cell([run.as_dict() for run in runs]) if given.json else [runs_table(runs, folder), hint])
    return True


def _show_run(given: Namespace, found: Run) -> None:
    if given.latex:
        emit(found.latex.rstrip("\n"))
        return
    if given.json:
        from lmms_eval.results.sample import json_cell

        facts = {"model": found.name, "date": found.date, "state": found.state, "command": found.command}
        emit(json_cell({**facts, "source": str(found.source), "notes": found.notes, "results": found.document}))
        return
    lines = [f"{found.name}, {found.date or 'no date'}, {found.state}: {found.source}"]
    if found.state not in ("complete", "unknown") and found.command:
        lines.append(f"the command that continues it: {found.command}")
    table = found.table or "\n".join(f"{name}: {len(task)} samples" for name, task in found.tasks.items())
    from lmms_eval.results.sample_text import asked_lines

    asked = asked_lines(found.document)
    emit([*lines, "", table, *(["", *asked] if asked else [])])


def _show_breakdown(given: Namespace, found: Run) -> None:
    from lmms_eval.results.breakdown import breakdown, breakdown_text
    from lmms_eval.results.sample import json_cell

    made = breakdown(found, found.task(given.task), given.metric)
    if given.json:
        emit(json_cell(to_dict(made)))
        return
    from lmms_eval.results.prompts import prompts_text
    from lmms_eval.results.sample_text import asked_lines

    asked = asked_lines(found.document, given.task)
    prompts = prompts_text(found.document, given.task)
    emit([breakdown_text(made), *(["", prompts] if prompts else []), *(["", *asked] if asked else [])])


def _show_sample(given: Namespace, found: Run) -> None:
    from lmms_eval.results.sample import json_cell
    from lmms_eval.results.sample_text import pipelines_text, sample_text

    task = found.task(given.task)
    sample = task.sample(given.doc, given.filter)
    if given.json:
        emit(json_cell(sample.whole))
        return
    numbers = [] if given.filter else [at for at, one in enumerate(task.index.doc_ids) if one == sample.doc_id]
    others = [task.at(number) for number in numbers[1:]]
    emit([sample_text(sample), *(["", pipelines_text(others)] if others else [])])

    show_pictures(_located(place, found) for place in sample.media)


def _located(place: str, found: Run) -> str:
    """Return the path of a medium; that of a file which the run keeps is relative to the folder of its samples."""
    from lmms_eval.media.keeper import FOLDER

    folders = [found.source.parent, *([] if found.record is None else [found.record.parent.parent, found.record])]
    kept = (str(folder / place) for folder in folders if place.startswith(f"{FOLDER}/") and (folder / place).is_file())
    return next(kept, place)


def _show_samples(given: Namespace, found: Run, chosen: Choice) -> None:
    from lmms_eval.results.columns import row_of
    from lmms_eval.results.sample import json_cell
    from lmms_eval.results.sample_text import samples_table

    tasks = [found.task(given.task)] if given.task else list(found.tasks.values())
    matching = (sample for task in tasks for sample in task.samples(chosen))
    limit = MOST_LINES if given.limit is None else given.limit
    first = list(islice(matching, limit))
    scores = [sample.score for sample in first]
    more = 0
    for sample in matching:
        more += 1
        scores.append(sample.score)
    if given.json:
        emit(json_cell(row_of(sample)) for sample in first)
    elif first:
        emit(samples_table(first))
    known = [score for score in scores if score is not None]
    mean = f", mean score {sum(known) / len(known):.4f} over {len(known)}" if known else ""
    left = f", {len(first)} of them shown (--limit)" if more else ""
    complain(f"{len(scores)} samples{left}{mean}")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)
