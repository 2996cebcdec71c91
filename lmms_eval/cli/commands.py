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
        Command("recipes", "list and compare the settings that models' authors use for each benchmark", "recipes"),
        Command("check", "try tasks and models: report what is broken or missing, and how to get it", "check"),
        Command("compare", "which run is better, how certain that is, and how many documents you need", "compare"),
        Command("table", "write runs and tasks as a table for a paper: LaTeX, Markdown, CSV or HTML", "table"),
        Command("report", "write runs as web pages that open from disk: scores, breakdowns, every sample", "report"),
        Command("view", "serve the same pages live while evaluations run", "view"),
        Command("gate", "CI check for regressions: may this run replace that one?", "gate"),
        Command("power", "compute how many documents a comparison needs", "power"),
        Command("show", "inspect a run: its table, a task's breakdown, its samples", "show"),
        Command("export", "write samples as Parquet, CSV, JSON lines or Excel, results for other tools", "export"),
        Command("card", "write a report card of a run: what it measured, how certain it is, what is missing", "card"),
        Command("score", "score or judge a finished run again", "score"),
        Command("judge", "draw judged answers for people to label, check whether a judge has drifted", "judge"),
        Command("cache", "inspect, prune or verify a response cache", "cache"),
        Command("megabench", "score MEGA-Bench submissions, derive the leaderboard's numbers", "megabench"),
        Command("milebench", "score MileBench predictions, collect the scores of several models", "milebench"),
        Command("mmie", "judge a file of MMIE answers", "mmie"),
        Command("general-bench", "fill General-Bench result workbooks, derive General-Level scores", "general_bench"),
        Command("fetch", "download and verify the data of tasks, and of scoring (fetch nltk)", "fetch"),
        Command("doctor", "check this machine: GPU, packages, keys", "doctor"),
        Command("completion", "print the shell-completion script", "completion.command"),
        Command("help", "explain a topic: tasks, models, resume, judges, exit codes, ...", "help"),
        Command("version", "print the versions of lmms-eval and of what it runs on", "version"),
        Command("ui", "open a web page to start, watch and compare evaluations", "ui"),
        Command("tui", "watch running evaluations in the terminal; --tui starts one", "tui"),
        Command("serve", "run an evaluation server: jobs over HTTP", "serve"),
        Command("mcp", "offer evaluations as tools to assistants (Model Context Protocol)", "mcp"),
    )
}
"""Commands by name, in the order of the help."""
