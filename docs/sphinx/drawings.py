"""Draw the pictures of the documentation: ``python docs/sphinx/drawings.py [FOLDER]`` (docs/images)."""

from __future__ import annotations

import itertools
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from sketch import Box, Kind, Sketch

ROOT = Path(__file__).resolve().parents[2]
_GROUPS: dict[str, tuple[Kind, str]] = {
    "cli": ("person", "what people and programs meet"),
    "evaluator": ("work", "runs, and what is made of them"),
    "tasks": ("model", "benchmarks and models"),
    "engine": ("work", "asking, judging, scoring"),
    "filters": ("disk", "pure functions, media, sandbox"),
    "config": ("person", "the ground: options, contracts, files"),
}
"""A package of the first layer of each group, and the group's description."""
_LEFT_BY_A_KILL: tuple[tuple[Box, Box], ...] = (
    (Box("disk", "a document is scored", "a line in scores-0.jsonl"), Box("work", "kept", "read back by its place")),
    (Box("disk", "an answer exists", "in responses-0.jsonl"), Box("work", "scored", "the model is not asked")),
    (Box("lost", "a line is torn", "or damaged on the disk"), Box("work", "skipped", "counted, made again")),
    (Box("lost", "a request is in flight", "not yet on the disk"), Box("model", "asked again")),
    (Box("lost", "a request has failed", "a line with its error"), Box("model", "asked again")),
    (Box("person", "a request waits", "recorded nowhere"), Box("model", "asked", "as it would have been")),
    (Box("disk", "owner.json is left", "host, process, start time"), Box("work", "taken over", "its process is dead")),
    (Box("lost", "results half written", "under another name"), Box("work", "written whole", "and renamed into place")),
)
"""States that a kill may leave, and what the next start does with each."""


def run() -> Sketch:
    """Draw one run as a user sees it."""
    sketch = Sketch(
        "run",
        "One run",
        "A command line names a model and tasks. The engine asks the model the tasks' requests, writes each response "
        "into a journal, has it scored, writes the score into a second journal, and aggregates the scores from there "
        "into the table, the results file, the samples and the report.",
    )
    (command,) = sketch.row(Box("person", "lmms-eval --model hf --tasks mme", "or a file, Python, a server's job"))
    tasks, model, judge = sketch.row(
        Box("work", "tasks", "documents, prompts, rules of scoring"),
        Box("model", "model", "local weights or a service"),
        Box("model", "judge", "where a metric needs one"),
    )
    (engine,) = sketch.row(Box("work", "engine", "asks what the journals lack, keeps the model busy"))
    (responses,) = sketch.row(Box("disk", "responses-0.jsonl", "every answer, written before it counts"))
    (scoring,) = sketch.row(Box("work", "scoring", "filters, metrics, verdicts of the judge"))
    (scores,) = sketch.row(Box("disk", "scores-0.jsonl", "every finished document"))
    (numbers,) = sketch.row(Box("work", "aggregation", "numbers with intervals, in the order of the documents"))
    ends = sketch.row(
        Box("person", "table"),
        Box("disk", "results .json"),
        Box("disk", "samples .jsonl"),
        Box("person", "report"),
    )
    for part in (tasks, model, judge):
        sketch.down(command, part)
        sketch.down(part, engine)
    chain = (engine, responses, scoring, scores, numbers)
    for upper, lower in itertools.pairwise(chain):
        sketch.down(upper, lower)
    for end in ends:
        sketch.down(numbers, end)
    return sketch


def layers() -> Sketch:
    """Draw the packages in the layers that ``import-linter`` enforces."""
    sketch = Sketch(
        "layers",
        "Packages by layer",
        "The packages of lmms_eval in rows that import only from rows below them. From top "
        f"to bottom: {'; '.join(text for _, text in _GROUPS.values())}.",
    )
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    rows = [
        [name.strip().removeprefix("lmms_eval.") for name in row.split("|")]
        for row in contracts["contracts"][0]["layers"]
    ]
    kind: Kind = "person"
    for names in rows:
        for name in _GROUPS.keys() & set(names):
            kind, text = _GROUPS[name]
            sketch.note(text, gap=2)
        sketch.row(*(Box(kind, name, share=len(name) + 2) for name in names), gap=5, between=7)
    sketch.note("Each row imports only from rows below it.")
    return sketch


def request() -> Sketch:
    """Draw the life of one request."""
    sketch = Sketch(
        "request",
        "The life of one request",
        "A document becomes a request. If the journal holds its answer, that is used at once; an answer in the "
        "response cache is first written to the journal. Otherwise the request is prepared ahead of use and the "
        "model is asked. Its response is written to the journal before it is counted. Then the conversation asks its "
        "next round, or the document is judged and scored, and the score is written to the journal.",
    )
    (document,) = sketch.row(Box("person", "document", "its requests, made when they are needed"))
    (known,) = sketch.row(Box("disk", "in the journal?", "then nothing is rendered: straight to the conversation"))
    (cached,) = sketch.row(Box("disk", "in the response cache?", "(with --use_cache) then straight to the journal"))
    (prepared,) = sketch.row(Box("work", "prepared ahead", "prompt rendered, media decoded, within a budget of bytes"))
    (asked,) = sketch.row(Box("model", "model", "a batch on a GPU, or an open call of a service"))
    (written,) = sketch.row(Box("disk", "one line in responses-0.jsonl", "one write, with a checksum"))
    (counted,) = sketch.row(Box("work", "counted, given to its conversation", "budgets, progress, what failed"))
    again, scored = sketch.row(
        Box("work", "next round", "a new request of the conversation"),
        Box("work", "judged, scored", "filters, metrics, questions for the judge"),
    )
    (kept,) = sketch.row(Box("disk", "one line in scores-0.jsonl", "answers and scores of the document"))
    sketch.down(document, known)
    sketch.down(known, cached, "no")
    sketch.down(cached, prepared, "no")
    sketch.down(prepared, asked)
    for upper, lower in ((asked, written), (written, counted), (counted, again), (counted, scored), (scored, kept)):
        sketch.down(upper, lower)
    return sketch


def resume() -> Sketch:
    """Draw what a kill leaves and what the next start does about it."""
    sketch = Sketch(
        "resume",
        "A kill, and the next start of the same command",
        "Eight states that a kill may find a request or a file in, and what the next start does: a scored document is "
        "kept; an answered one is scored, not asked; a torn line fails its checksum and its content is made again; "
        "what was in flight or failed is asked again; what was not asked is asked; the folder of a dead process is "
        "taken over at once; a results file is never half written.",
    )
    sketch.note("left: at the kill; right: at the next start", gap=4)
    for left, right in _LEFT_BY_A_KILL:
        sketch.across(*sketch.row(left, right, gap=9, between=24))
    return sketch


def server() -> Sketch:
    """Draw the evaluation server with its jobs."""
    sketch = Sketch(
        "server",
        "The server and its jobs",
        "A client submits a job to the server, which checks who asks and what for, and notes the job in SQLite. The "
        "scheduler starts it when GPUs are free: a keeper that outlives the server, and below it the ordinary command "
        "line, which writes its journals. The server reads progress and samples from these journals.",
    )
    client, assistant = sketch.row(
        Box("person", "training loop", "EvalClient, curl"), Box("person", "assistant", "lmms-eval mcp")
    )
    (http,) = sketch.row(Box("work", "server", "guard: who may ask; policy: what for"))
    store, scheduler = sketch.row(
        Box("disk", "jobs.sqlite", "waiting, running, ended jobs"),
        Box("work", "scheduler", "order of submission, free GPUs"),
    )
    first, second = sketch.row(
        Box("work", "keeper of job 1", "log, end, exit code; outlives the server"),
        Box("work", "keeper of job 2", "on other GPUs"),
    )
    runs = sketch.row(
        Box("model", "lmms-eval ...", "the ordinary command line"),
        Box("model", "lmms-eval ...", "another run"),
    )
    folders = sketch.row(
        Box("disk", ".runs/KEY", "growing journals"), Box("disk", ".runs/KEY", "journals, results"), gap=14
    )
    sketch.note("The server follows the journals: progress, running scores and samples come from there.")
    sketch.down(client, http)
    sketch.down(assistant, http)
    sketch.down(http, store)
    sketch.down(http, scheduler)
    sketch.across(store, scheduler)
    sketch.down(scheduler, first)
    sketch.down(scheduler, second)
    for keeper, started, folder in zip((first, second), runs, folders, strict=True):
        sketch.down(keeper, started)
        sketch.down(started, folder)
    return sketch


def drawings() -> Iterator[Sketch]:
    """Make all drawings."""
    for draw in (run, layers, request, resume, server):
        yield draw()


def main(words: list[str]) -> None:
    """Write every drawing into a folder."""
    folder = Path(words[0]) if words else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    for sketch in drawings():
        (folder / f"{sketch.name}.svg").write_text(sketch.svg(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
