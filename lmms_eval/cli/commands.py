"""The table of commands: dispatch and help texts derive from it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

Action = Callable[[Sequence[str]], int]
"""Function that takes the words after the command and returns the exit code."""


class Command(NamedTuple):
    """A command. A named tuple, since importing dataclasses takes as long as the rest of a short command."""

    name: str
    text: str
    """One line of help."""
    module: str
    """Module of ``lmms_eval.cli`` whose function ``run`` is the command; imported when the command runs."""

    def run(self, words: Sequence[str]) -> int:
        """Run the command with the words after its name and return the exit code.

        Raises ``UsageError`` if a word is wrong.
        """
        action: Action = importlib.import_module(f"lmms_eval.cli.{self.module}").run
        return action(words)


COMMANDS = {
    command.name: command
    for command in (
        Command("eval", "evaluate a model on tasks (also without the word: lmms-eval --model ...)", "evaluate"),
        Command("tasks", "list tasks, groups, subtasks or tags", "tasks"),
        Command("packs", "get the tasks of other packages, such as lm-eval and lmms-eval", "packs"),
        Command("models", "list models", "models"),
        Command("recipes", "what models' authors set for each benchmark: list, describe, compare, check", "recipes"),
        Command("check", "try tasks and models: what is broken, what is missing, how to get it", "check"),
        Command("compare", "which of several runs is better, how certain that is, what would decide it", "compare"),
        Command("table", "runs and tasks as a table for a paper: LaTeX, Markdown, CSV, HTML", "table"),
        Command("report", "runs as pages that open from disk: numbers, breakdowns, every sample", "report"),
        Command("view", "the same pages for running evaluations, from a server on this machine", "view"),
        Command("gate", "whether one run may replace another, by a policy, for CI systems", "gate"),
        Command("power", "how many documents a comparison needs", "power"),
        Command("show", "show a run again: its table, a task's breakdown, one sample, selected samples", "show"),
        Command(
            "export", "samples as one file (Parquet, CSV, JSON lines, Excel), results as records for others", "export"
        ),
        Command("card", "report card of a run: what was measured, how certain it is, what is missing", "card"),
        Command("score", "score or judge a finished run again", "score"),
        Command("judge", "draw judged answers for people to score, and find out whether a judge has drifted", "judge"),
        Command("cache", "look into, prune or check a response cache", "cache"),
        Command("megabench", "score MEGA-Bench submissions, derive the leaderboard's numbers", "megabench"),
        Command("milebench", "score MileBench predictions, collect the scores of several models", "milebench"),
        Command("mmie", "judge a file of MMIE answers", "mmie"),
        Command("general-bench", "General-Bench result workbooks and General-Level scores", "general_bench"),
        Command("fetch", "get and check the data of tasks; data that scoring needs (fetch nltk)", "fetch"),
        Command("doctor", "what a run would find on this machine and in this installation", "doctor"),
        Command("completion", "completion of commands, options, tasks, models in a shell", "completion.command"),
        Command("help", "short texts by topic: tasks, models, resume, judges, exit codes, ...", "help"),
        Command("version", "versions of lmms-eval and what it runs on", "version"),
        Command("ui", "web page: choose, start and watch evaluations, compare their results", "ui"),
        Command("tui", "watch running evaluations in the terminal; --tui starts one", "tui"),
        Command("serve", "evaluation server: jobs over HTTP that survive it", "serve"),
        Command("mcp", "evaluations as tools of assistants (Model Context Protocol)", "mcp"),
    )
}
"""Commands by name, in the order of the help."""
