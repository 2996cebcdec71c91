from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.main import main
from lmms_eval.config import build_config, check_config
from lmms_eval.config.rules import options_without_effect
from lmms_eval.errors import ConfigError
from tests.cases import for_each

BAD = [
    (["--limit", "0"], "--limit: give a count"),
    (["--limit", "-2"], "--limit: give a count"),
    (["--limit", "-0.5"], "--limit: give a count"),
    (["--limit", "nan"], "--limit: give a count"),
    (["--limit", "inf"], "--limit: give a count"),
    (["--limit", "abc"], "--limit: should be a valid number"),
    (["--offset", "-1"], "--offset: the index"),
    (["--offset", "x"], "--offset: should be a valid integer"),
    (["--log_samples"], "--log_samples writes a samples file: say where with --output_path DIR"),
    (["-x"], "--predict_only writes a samples file: say where with --output_path DIR"),
    (["--seed", "1,2"], "--seed: "),
    (["--seed", "1,2,3,4,5"], "--seed: "),
    (["--seed", "abc"], "--seed: "),
    (["--fewshot_as_multiturn", "--num_fewshot", "2"], "needs --apply_chat_template"),
    (["--fewshot_as_multiturn", "--apply_chat_template"], "give --num_fewshot N with N > 0"),
    (["--fewshot_as_multiturn", "--apply_chat_template", "--num_fewshot", "0"], "give --num_fewshot N with N > 0"),
    (["--num_fewshot", "-1"], "--num_fewshot: must be at least 0"),
    (["--repeats", "0"], "--repeats: must be at least 1"),
    (["--batch_size", "0"], "--batch_size: give a count"),
    (["--max_batch_size", "0"], "--max_batch_size: must be at least 1"),
    (["--error_budget", "1.5"], "--error_budget: must lie between 0 and 1"),
    (["--error_budget", "-0.1"], "--error_budget: must lie between 0 and 1"),
    (["--error_budget", "nan"], "--error_budget: must lie between 0 and 1"),
    (["--grace", "-1"], "--grace: must be at least 0"),
    (["--grace", "inf"], "--grace: must be a finite number"),
    (["--chunk_size", "0"], "--chunk_size: must be at least 1"),
    (["--prefetch_mb", "0"], "--prefetch_mb: must be at least 1"),
    (["--score_workers", "-1"], "--score_workers: must be at least 0"),
    (["--image_jpeg_quality", "101"], "--image_jpeg_quality: must lie between 1 and 100"),
    (["--image_encode_format", "bmp"], "choose one of PNG, JPEG, WEBP"),
    (["--agentic_trace_mode", "all"], "--agentic_trace_mode: choose one of basic, full"),
    (["--verbosity", "loud"], "--verbosity: choose one of"),
    (["--timezone", "Mars/Base"], "--timezone: 'Mars/Base' is not the name"),
    (["--timezone", "../etc"], "--timezone: "),
    (["--reasoning_tags", "<think>"], "reasoning_tags: give a JSON list"),
    (["--reasoning_tags", '[["a"]]'], "reasoning_tags: give a JSON list"),
    (["--model_args", "novalue"], "model_args: write it as key=value"),
    (["--gen_kwargs", "novalue"], "gen_kwargs: write it as key=value"),
    (["--include_path", "/no/such/folder"], "--include_path: there is no /no/such/folder"),
    (["--data_root", "/no/such/folder"], "--data_root: there is no folder"),
    (["--nltk_data", "/no/such/folder"], "--nltk_data: there is no folder /no/such/folder"),
    (["--geocode_table", "/no/such.json"], "--geocode_table: there is no file /no/such.json"),
    (["--judge_prompts", "/no/such.py"], "--judge_prompts: there is no file /no/such.py"),
    (["--human_scores", "/no/such.csv"], "--human_scores: there is no file /no/such.csv"),
    (["--judge_repeats", "0"], "--judge_repeats: must be at least 1"),
    (["--t2i_args", "size=1x1"], "--t2i_args: name the model that draws with --t2i"),
    (["--geocoder", "osm"], "--geocoder: give nominatim, or a URL"),
    (["--geocoder", "file:///etc/passwd"], "--geocoder: give nominatim, or a URL"),
    (["--resume", "/no/such/folder"], "--resume: there is no folder"),
    (["--baseline", "/no/such/file.jsonl"], "--baseline: there is no samples file"),
    (["--config", "/no/such/file.yaml"], "cannot read /no/such/file.yaml"),
    (["--modle", "x"], "unknown flag --modle; did you mean --model"),
    (["--model"], "--model: expected one argument"),
]


@for_each(("arguments", "message"), BAD, ids=lambda value: " ".join(value)[:40])
def test_bad_options_end_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", "baseline", "--tasks", "t", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("error: ")
    assert len(captured.err.strip().splitlines()) == 1
    assert captured.out == ""


def test_tasks_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", "baseline"]) == 2
    assert "--tasks is missing" in capsys.readouterr().err


def test_a_cache_of_requests_is_said_to_be_not_needed() -> None:
    config = build_config({"tasks": "t", "cache_requests": "refresh"}, {})
    (line,) = options_without_effect(config)
    assert line.startswith("--cache_requests refresh is not needed")
    assert options_without_effect(build_config({"tasks": "t"}, {})) == []


def test_the_screen_is_for_the_command_line_alone() -> None:
    with pytest.raises(ConfigError, match="--tui is for the command line only"):
        check_config(build_config({"tasks": "t", "tui": True}, {}))


@for_each(
    "values",
    [
        {"limit": -1}, {"limit": 0.25}, {"limit": 1}, {"log_samples": True, "output_path": "o"},
        {"fewshot_as_multiturn": True, "apply_chat_template": True, "num_fewshot": 1}, {"timezone": "UTC"},
        {"error_budget": 1}, {"grace": 0}, {"score_workers": 0}, {"reasoning_tags": "NONE"},
    ],
)  # fmt: skip
def test_good_options(values: dict[str, Any]) -> None:
    config = build_config({"tasks": "t", **values}, {})
    assert all(getattr(config, name) == value for name, value in values.items())


def test_a_stale_folder_in_the_environment_ends_no_run() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NLTK_DATA", "/no/such/folder")
        assert build_config({"tasks": "t"}).nltk_data == "/no/such/folder"
        with pytest.raises(ConfigError, match="--nltk_data: there is no folder /other"):
            build_config({"tasks": "t", "nltk_data": "/other"})


def test_geocoders() -> None:
    for name in ("nominatim", "http://127.0.0.1:8080", "https://geo.example"):
        assert build_config({"tasks": "t", "geocoder": name}, {}).geocoder == name


def test_the_message_of_a_batch_names_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("- {tasks: a}\n- {tasks: b, offset: -1}\n")
    assert main(["--config", str(path)]) == 2
    assert "run 2 of 2: --offset" in capsys.readouterr().err


def test_paths_that_exist(tmp_path: Path) -> None:
    samples = tmp_path / "s.jsonl"
    samples.write_text("{}\n")
    values = {
        "data_root": str(tmp_path),
        "include_path": str(tmp_path),
        "baseline": str(samples),
        "resume": str(tmp_path),
    }
    assert build_config({"tasks": "t", **values}, {}).baseline == str(samples)
    for baseline in (str(tmp_path), "hf://user/repo", "preset:task"):
        assert build_config({"tasks": "t", "baseline": baseline}, {}).baseline == baseline
