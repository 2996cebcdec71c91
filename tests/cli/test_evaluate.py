from __future__ import annotations

import os
from pathlib import Path

from lmms_eval.cli.main import main
from lmms_eval.config import RunConfig
from lmms_eval.errors import MediaError, UnknownNameError
from lmms_eval.utils import user_code
from tests.cases import for_each
from tests.cli.fakes import Report, install

ONE = ["--model", "baseline", "--tasks", "t"]
SECRET = "sk-very-secret-0123456789"


def _batch(folder: Path, *tasks: str) -> list[str]:
    path = folder / "batch.yaml"
    path.write_text("".join(f"- {{model: baseline, tasks: {task}}}\n" for task in tasks))
    return ["--config", str(path)]


@for_each("code", [0, 3, 130])
def test_the_report_is_printed_and_its_code_returned(code: int, monkeypatch, capsys) -> None:
    evaluator = install(monkeypatch, lambda config: Report(code))
    assert main(ONE) == code
    assert capsys.readouterr().out == "|table|\nlast line\n"
    assert [config.tasks for config in evaluator.seen] == ["t"]


def test_the_word_eval_may_stand_in_front(monkeypatch) -> None:
    evaluator = install(monkeypatch, lambda config: Report())
    assert main(["eval", *ONE, "--limit", "2"]) == 0
    assert evaluator.seen[0].limit == 2


@for_each(
    ("error", "code", "message"),
    [
        (UnknownNameError("task", "nope", ["nope1"]), 2, "error: unknown task 'nope'; did you mean nope1?"),
        (MediaError("cannot decode x.png"), 1, "error: cannot decode x.png"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_end_with_one_line_and_their_code(error, code, message, monkeypatch, capsys) -> None:
    def fail(config: RunConfig) -> Report:
        raise error

    install(monkeypatch, fail)
    assert main(ONE) == code
    assert capsys.readouterr().err.strip().splitlines() == [message]


def test_debug_shows_the_traceback(monkeypatch, capsys) -> None:
    def fail(config: RunConfig) -> Report:
        raise MediaError("cannot decode x.png")

    install(monkeypatch, fail)
    assert main([*ONE, "--verbosity", "DEBUG"]) == 1
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert error.rstrip().endswith("error: cannot decode x.png")


def test_debug_from_a_file_shows_the_traceback(tmp_path, monkeypatch, capsys) -> None:
    def fail(config: RunConfig) -> Report:
        raise MediaError("cannot decode x.png")

    install(monkeypatch, fail)
    path = tmp_path / "c.yaml"
    path.write_text("{model: baseline, tasks: t, verbosity: debug}")
    assert main(["--config", str(path)]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_unexpected_error_shows_its_traceback_without_secrets(monkeypatch, capsys) -> None:
    def fail(config: RunConfig) -> Report:
        raise RuntimeError(f"bug with api_key={SECRET}")

    install(monkeypatch, fail)
    monkeypatch.setattr(user_code, "_PACKAGES", (*user_code._PACKAGES, Path(__file__).parents[1]))
    assert main(ONE) == 1
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert "internal error: RuntimeError: bug with" in error
    assert SECRET not in error


def test_an_error_of_the_users_code_shows_its_own_lines_without_secrets(monkeypatch, capsys) -> None:
    def fail(config: RunConfig) -> Report:
        raise RuntimeError(f"bug with api_key={SECRET}")

    install(monkeypatch, fail)
    assert main(ONE) == 1
    error = capsys.readouterr().err
    *frames, last = error.splitlines()
    assert last.startswith("error: your code raised RuntimeError: bug with") and "--verbosity DEBUG" in last
    assert "in fail:" in frames[-1] and 'raise RuntimeError(f"bug with' in frames[-1] and len(frames) == 2
    assert SECRET not in error
    assert main([*ONE, "--verbosity", "DEBUG"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_failed_run_of_a_batch_does_not_stop_the_others(tmp_path, monkeypatch, capsys) -> None:
    def outcome(config: RunConfig) -> Report:
        if config.tasks == "bad":
            raise UnknownNameError("task", "bad", [])
        if config.tasks == "bug":
            raise RuntimeError("broken")
        return Report({"withheld": 3}.get(str(config.tasks), 0), table=f"|{config.tasks}|", lines=[])

    evaluator = install(monkeypatch, outcome)
    assert main(_batch(tmp_path, "a", "withheld", "bad", "bug", "b")) == 3
    captured = capsys.readouterr()
    assert [config.tasks for config in evaluator.seen] == ["a", "withheld", "bad", "bug", "b"]
    assert captured.out.splitlines() == ["|a|", "|withheld|", "|b|"]
    assert "error: run 3 of 5 (baseline on bad): unknown task 'bad'" in captured.err
    assert "error: run 4 of 5 (baseline on bug): your code raised RuntimeError: broken" in captured.err


@for_each(("tasks", "code"), [(("bad", "a"), 2), (("a", "b"), 0)])
def test_the_code_of_a_batch(tasks, code, tmp_path, monkeypatch) -> None:
    def outcome(config: RunConfig) -> Report:
        if config.tasks == "bad":
            raise UnknownNameError("task", "bad", [])
        return Report()

    install(monkeypatch, outcome)
    assert main(_batch(tmp_path, *tasks)) == code


@for_each("how", ["report", "keyboard"])
def test_an_interrupt_ends_a_batch(how, tmp_path, monkeypatch) -> None:
    def outcome(config: RunConfig) -> Report:
        if how == "keyboard":
            raise KeyboardInterrupt
        return Report(130)

    evaluator = install(monkeypatch, outcome)
    assert main(_batch(tmp_path, "a", "b")) == 130
    assert len(evaluator.seen) == 1


def test_a_wrong_option_of_a_later_run_stops_the_batch_before_it_starts(tmp_path, monkeypatch) -> None:
    evaluator = install(monkeypatch, lambda config: Report())
    path = tmp_path / "c.yaml"
    path.write_text("- {tasks: a}\n- {tasks: b, limt: 3}\n")
    assert main(["--config", str(path)]) == 2
    assert evaluator.seen == []


def test_the_environment_of_a_file_is_set_and_logged_masked(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("MY_HOME", "")
    monkeypatch.setenv("MY_API_KEY", "")
    seen = {}
    install(monkeypatch, lambda config: seen.update(os.environ) or Report())
    path = tmp_path / "c.yaml"
    path.write_text("{env: {MY_HOME: '${NOPE_VAR:-/default/place}', MY_API_KEY: abcdefghijkl}, tasks: t}")
    assert main(["--config", str(path)]) == 0
    assert (seen["MY_HOME"], seen["MY_API_KEY"]) == ("/default/place", "abcdefghijkl")
    error = capsys.readouterr().err
    assert "Config env: MY_API_KEY=********" in error
    assert "Config env: MY_HOME=/default/place" in error
    assert "abcdefghijkl" not in error


def test_verbosity_is_exported(monkeypatch) -> None:
    seen = []
    install(monkeypatch, lambda config: seen.append(os.environ["VERBOSITY"]) or Report())
    main([*ONE, "--verbosity", "error"])
    assert seen == ["ERROR"]


def test_a_listing_beside_a_task_is_refused(capsys) -> None:
    assert main(["--tasks", "list,gold"]) == 2
    assert "'gold' cannot be combined with a listing" in capsys.readouterr().err


def test_an_error_in_one_of_several_processes_names_it(monkeypatch, capsys) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "2")

    def fail(config: RunConfig) -> Report:
        raise MediaError("cannot decode x.png")

    install(monkeypatch, fail)
    assert main(["--model", "baseline", "--tasks", "t"]) == 1
    assert "error: process 2: cannot decode x.png" in capsys.readouterr().err
