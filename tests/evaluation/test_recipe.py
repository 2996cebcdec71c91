"""Runs with ``--recipe``: what is sent, what the results say, what is refused, and what a kill leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.recipes.recipe import names, read
from tests.cases import for_each
from tests.evaluation.test_controls import Chat, Simple, evaluated, picture_task
from tests.faults.command import Ended, in_process, journal, results
from tests.recipes.kit import TASKS, write_data
from tests.recipes.test_requests import file_of, shown
from tests.servers.stub import StubServer

SCRIPTS, KIT = "qwen3-vl-instruct@qwen-evaluation", "plain@vlmevalkit"
SERVED = "Qwen/Qwen3-VL-8B-Instruct"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


def arguments(data: Path, tasks: str, *more: str | Path, url: str = "http://127.0.0.1:9/v1") -> list[str | Path]:
    return ["--model", "openai", "--model_args", f"model={SERVED},base_url={url},api_key=EMPTY,image_format=JPEG",
            "--tasks", tasks, "--data_root", data, *more]  # fmt: skip


def constant(data: Path, tasks: str, *more: str | Path) -> Ended:
    return in_process("--model", "baseline", "--model_args", "strategy=constant,text=A", "--tasks", tasks,
                      "--data_root", data, *more)  # fmt: skip


def options_of(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in ("messages", "model")}


def sent_as_recorded(data: Path, out: Path, recipe: str, tasks: Sequence[str], *more: str) -> None:
    """Run tasks against a scripted server, and compare what it gets with the golden file."""
    with StubServer(reply="A") as server:
        words = arguments(data, ",".join(tasks), "--recipe", recipe, "--output_path", out, *more, url=server.url)
        stated = [task.media for name in tasks if (task := read(recipe).task(name)) is not None]
        words[3] = f"{words[3]},max_frames_num={max(3, *(one.frames or one.max_frames or 0 for one in stated))}"
        ended = in_process(*words)
        bodies = server.bodies()
    assert ended.code in (0, 3), ended.shown  # some numbers need a judge
    golden = json.loads(file_of(recipe).read_text("utf-8"))[read(recipe).variant]
    wanted = [
        {"messages": one["messages"], "options": one["options"]} for task in golden if task in tasks
        for one in golden[task]
    ]  # fmt: skip
    sent = [
        {
            "messages": [[turn["role"], *map(shown, turn["content"])] for turn in body["messages"]],
            "options": options_of(body),
        }
        for body in bodies
    ]
    assert sorted(map(as_text, sent)) == sorted(map(as_text, wanted))


def as_text(one: Any) -> str:
    return json.dumps(one, sort_keys=True)


def test_a_server_gets_what_the_golden_file_holds(data: Path, tmp_path: Path) -> None:
    sent_as_recorded(data, tmp_path, SCRIPTS, ("mmmu_val", "realworldqa"))
    found = results(tmp_path)
    assert found["effective_requests"]["mmmu_val"]["options"]["presence_penalty"] == 1.5
    assert found["effective_requests"]["mmmu_val"]["media"]["min_pixels"] == 1280 * 28 * 28
    assert found["effective_requests"]["realworldqa"]["media"]["min_pixels"] == 768 * 28 * 28
    assert found["configs"]["mmmu_val"]["generation_kwargs"]["max_new_tokens"] == 32768


@pytest.mark.parametrize("name", names())
def test_a_server_gets_every_recipe(name: str, data: Path, tmp_path: Path) -> None:
    golden = json.loads(file_of(name).read_text("utf-8"))[read(name).variant]
    sent_as_recorded(data, tmp_path, name, [task for task in TASKS if task in golden], "--recipe_partial")


def test_results_and_output_name_recipe_and_differences(data: Path, tmp_path: Path) -> None:
    with StubServer(reply="A") as server:
        ended = in_process(*arguments(
            data, "mmmu_val", "--recipe", f"{SCRIPTS}:cot", "--output_path", tmp_path, "--gen_kwargs",
            "temperature=0,max_tokens=64", "--repeats", "2", "--seed", "7", "--limit", "1", url=server.url,
        ))  # fmt: skip
        body = server.bodies()[0]
    assert ended.code == 0, ended.shown
    assert (body["temperature"], body["max_tokens"], body["top_k"]) == (0, 64, 20)
    part = results(tmp_path)["recipe"]
    assert (part["name"], part["variant"], len(part["sha256"])) == (SCRIPTS, "cot", 64)
    assert part["differs"]["mmmu_val"] == {
        "gen_kwargs.temperature": {"recipe": 0.7, "run": 0},
        "gen_kwargs.max_new_tokens": {"recipe": 32768, "run": 64},
        "repeats": {"recipe": 1, "run": 2},
        "seed": {"recipe": 42, "run": 7},
        "judge.model": {"recipe": "gpt-3.5-turbo-0125", "run": None},
    }
    assert (part["missing"], part["not_covered"]) == ({}, [])
    (line,) = [line for line in ended.out.splitlines() if line.startswith("differs from the recipe")]
    assert "gen_kwargs.temperature: 0 (recipe: 0.7)" in line
    assert "judge: none (recipe: gpt-3.5-turbo-0125)" in line
    assert f"recipe: {SCRIPTS}:cot (sha256 {part['sha256'][:12]})" in ended.out


def test_what_is_not_stated_stays_and_is_listed(data: Path, tmp_path: Path) -> None:
    ended = constant(data, "chartqa", "--recipe", KIT, "--output_path", tmp_path)
    assert ended.code == 0, ended.shown
    found = results(tmp_path)
    assert "gen_kwargs.temperature" in found["recipe"]["not_stated"]["chartqa"]
    assert found["configs"]["chartqa"]["generation_kwargs"]["max_new_tokens"] == 16
    assert "not stated by the recipe" in ended.out


def test_arguments_of_the_model_are_of_the_command_line(data: Path, tmp_path: Path) -> None:
    with StubServer(reply="A") as server:
        words = arguments(data, "mmmu_val", "--recipe", SCRIPTS, "--limit", "1", "--output_path", tmp_path)
        words[3] = f"model={SERVED},base_url={server.url},api_key=EMPTY,max_pixels=4000,min_pixels=1000"
        ended = in_process(*words)
        body = server.bodies()[0]
    assert ended.code == 0, ended.shown
    assert shown(body["messages"][0]["content"][0]) == "<red 40x30>"
    differs = results(tmp_path)["recipe"]["differs"]["mmmu_val"]
    assert differs["media.max_pixels"] == {"recipe": 5120 * 28 * 28, "run": 4000}


def test_a_run_key_follows_what_changes_an_answer(data: Path, tmp_path: Path) -> None:
    def key(name: str, *more: str | Path) -> Any:
        assert constant(data, "mmmu_val", "--output_path", tmp_path / name, *more).code == 0
        return results(tmp_path / name)["run_key"]

    own = tmp_path / "own.yaml"
    text = (Path(__file__).parents[2] / f"lmms_eval/recipes/{SCRIPTS}.yaml").read_text("utf-8")
    own.write_text(re.sub(r"model: gpt-3.5-turbo-0125", "model: another", text), "utf-8")
    recipe = key("recipe", "--recipe", SCRIPTS)
    assert recipe == key("own", "--recipe", own)  # another name, another judge
    assert recipe != key("cot", "--recipe", f"{SCRIPTS}:cot")
    assert recipe != key("none")


REFUSED = [
    (["--recipe", "qwen4-vl"], "unknown recipe 'qwen4-vl'"),
    (["--recipe", f"{SCRIPTS}:reprot"], "unknown variant 'reprot'"),
    (["--recipe", "/nowhere/mine.yaml"], "there is no such file"),
    (["--recipe", SCRIPTS, "--tasks", "mmmu_val,mme"], "it does not cover mme"),
    (["--recipe", SCRIPTS, "--tasks", "mme"], "it covers no task of this run (mme)"),
    (["--recipe", SCRIPTS, "--task_kwargs", "pre_prompt=Hi"], "--task_kwargs pre_prompt: the recipe's layout"),
    (["--recipe", "minicpm-v-4@vlmevalkit", "--tasks", "mmstar"], "cannot do what the recipe states"),
]


@for_each(("words", "text"), REFUSED)
def test_bad_input_is_one_line(words: list[str], text: str, data: Path) -> None:
    ended = constant(data, "mmmu_val", *words)
    assert ended.code == 2, ended.shown
    (line,) = [line for line in ended.err.splitlines() if "error:" in line]
    assert text in line
    assert "Traceback" not in ended.shown


@for_each(
    ("content", "text"),
    [
        ("models: []\ntasks: {mmmu_val: {layout: {parts: '{{ quesiton }}'}}}", "unknown field 'quesiton'"),
        ("models: []\ntasks: {mmmu_val: {gen_kwargs: {temprature: 1}}}", "did you mean 'temperature'"),
        ("models: []\ntasks: {mmmu_val: {media: {max_pixles: 1}}}", "max_pixles"),
        ("models: [\n", "mine.yaml"),
        ("models: []\ntasks: {mmmu_val: {layout: {parts: '{{ question.upper() }}'}}}", "mine.yaml"),
    ],
)
def test_a_bad_file_is_one_line(content: str, text: str, data: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(content, "utf-8")
    ended = constant(data, "mmmu_val", "--recipe", tmp_path / "mine.yaml")
    assert ended.code == 2, ended.shown
    assert text in ended.err
    assert "Traceback" not in ended.shown


def test_a_form_of_the_data_that_no_layout_fits_ends_the_run_at_once(tmp_path: Path) -> None:
    (tmp_path / "MMStar").mkdir()
    row = {"index": 1, "question": "No options here?", "image": None, "answer": "A", "category": "math",
           "l2_category": "x"}  # fmt: skip
    (tmp_path / "MMStar" / "val-00000-of-00001.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    ended = constant(tmp_path, "mmstar", "--recipe", KIT)
    assert ended.code == 2, ended.shown
    assert "task 'mmstar', document 0" in ended.err and "no options after 'Options:'" in ended.err


def test_partial_runs_go_without_and_list_it(data: Path, tmp_path: Path) -> None:
    words = ("--recipe", "minicpm-v-4@vlmevalkit", "--recipe_partial", "--output_path", tmp_path)
    ended = constant(data, "mmstar", *words)
    assert ended.code == 0, ended.shown
    missing = results(tmp_path)["recipe"]["missing"]["mmstar"]
    assert any(key.startswith("not_reproducible") for key in missing)
    assert "missing of the recipe (mmstar)" in ended.out


def test_a_task_that_is_not_covered_is_asked_with_its_own_settings(data: Path, tmp_path: Path) -> None:
    ended = constant(data, "mmmu_val,mme", "--recipe", SCRIPTS, "--recipe_partial", "--output_path", tmp_path)
    assert ended.code == 0, ended.shown
    found = results(tmp_path)
    assert found["recipe"]["not_covered"] == ["mme"]
    assert found["configs"]["mme"]["generation_kwargs"]["max_new_tokens"] == 16


def test_a_recipe_for_another_model_warns(data: Path) -> None:
    with StubServer(reply="A") as server:
        words = arguments(data, "mmmu_val", "--recipe", SCRIPTS, "--limit", "1", url=server.url)
        words[3] = f"model=other/model,base_url={server.url},api_key=EMPTY"
        ended = in_process(*words)
    assert ended.code == 0, ended.shown
    assert "it is for Qwen/Qwen3-VL-*-Instruct*, not for other/model" in ended.err


def test_a_known_model_without_a_recipe_is_told_of_it(data: Path) -> None:
    with StubServer(reply="A") as server:
        ended = in_process(*arguments(data, "mmmu_val", "--limit", "1", url=server.url))
    assert f"`--recipe {SCRIPTS}` uses the first" in ended.err


def test_a_public_service_without_such_options_refuses(data: Path) -> None:
    words = arguments(data, "mmmu_val", "--recipe", SCRIPTS)
    words[3] = "model=gpt-5,api_key=EMPTY"
    ended = in_process(*words)
    assert ended.code == 2, ended.shown
    assert "cannot do what the recipe states: gen_kwargs.temperature=0.7" in ended.err or "top_k" in ended.err


def test_a_killed_run_keeps_the_recipe(data: Path, tmp_path: Path) -> None:
    with StubServer(reply="A", delay=0.4) as server:
        words = [*arguments(data, "mmmu_val", "--recipe", SCRIPTS, "--output_path", tmp_path, url=server.url)]
        words[3] = f"{words[3]},num_concurrent=1"
        process = subprocess.Popen(
            [sys.executable, "-m", "lmms_eval", *map(str, words)], env={**os.environ}, stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + 60
        while not journal(tmp_path) and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        held = len(journal(tmp_path))
        assert 0 < held < 3
        ended = in_process(*words)
        assert ended.code == 0, ended.shown
        assert server.stats()["completed"] <= 3 + 1  # one may have been in flight
        options = [options_of(body) for body in server.bodies()]
    assert {json.dumps({**one, "seed": 0}, sort_keys=True) for one in options} == {
        json.dumps({**options[0], "seed": 0}, sort_keys=True)
    }
    found = results(tmp_path)
    assert found["recipe"]["name"] == SCRIPTS and found["timing"]["resumed"] == held
    assert found["outcomes"]["mmmu_val"]["scored"] == 3


def test_a_back_end_that_has_no_such_option_refuses_or_goes_without(data: Path, tmp_path: Path) -> None:
    words = ["--model", "hf", "--model_args", "pretrained=embedded", "--tasks", "chartqa", "--data_root", data]
    own = tmp_path / "mine.yaml"
    own.write_text(
        "models: [embedded]\ntasks:\n  chartqa:\n    gen_kwargs: {presence_penalty: 1.5, max_new_tokens: 3}\n", "utf-8"
    )
    refused = in_process(*words, "--recipe", own)
    assert refused.code == 2, refused.shown
    assert "model 'hf' cannot do what the recipe states: gen_kwargs.presence_penalty=1.5 (the model has" in refused.err
    neutral = tmp_path / "neutral.yaml"
    neutral.write_text(own.read_text("utf-8").replace("1.5", "0.0"), "utf-8")
    for file, missing in ((own, {"gen_kwargs.presence_penalty=1.5"}), (neutral, set())):
        ended = in_process(*words, "--recipe", file, *(["--recipe_partial"] if missing else []), "--output_path",
                           tmp_path / file.stem)  # fmt: skip
        assert ended.code == 0, ended.shown
        assert set(results(tmp_path / file.stem)["recipe"]["missing"].get("chartqa", {})) == missing


def test_a_recipe_in_a_file_of_options(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(
        f"model: baseline\nmodel_args: strategy=constant\ntasks: mmmu_val\ndata_root: {data}\nlimit: 1\n"
        f"recipe: {SCRIPTS}:cot\noutput_path: {tmp_path / 'out'}\n",
        "utf-8",
    )
    ended = in_process("--config", file)
    assert ended.code == 0, ended.shown
    assert results(tmp_path / "out")["recipe"]["variant"] == "cot"


def test_scoring_again_keeps_the_recipe(data: Path, tmp_path: Path) -> None:
    words = ("--recipe", SCRIPTS, "--output_path", tmp_path, "--log_samples")
    assert constant(data, "mmmu_val", *words).code == 0
    before = results(tmp_path)["recipe"]
    again = in_process("score", tmp_path)
    assert again.code == 0, again.shown
    assert results(tmp_path)["recipe"] == before


def test_a_dry_run_measures_what_the_recipe_sends(data: Path) -> None:
    own, recipe = (
        in_process(*arguments(data, "mmmu_val", "--dry_run", *more)).out for more in ([], ["--recipe", SCRIPTS])
    )
    assert "pictures: 4, " in recipe and "encoded anew" in recipe  # each once, scaled up
    assert "encoded anew" not in own


@for_each("plugin", [Simple, Chat])
def test_class_plugins_are_asked_by_the_layout_of_a_users_recipe(plugin: type[Simple], tmp_path: Path) -> None:
    picture_task(tmp_path, documents=2)
    own = tmp_path / "mine.yaml"
    own.write_text(
        "models: []\ntasks:\n  probe:\n    system_prompt: Look.\n"
        "    layout: {parts: 'Q: {{ question }} {{ options | join(\"/\") }}'}\n",
        "utf-8",
    )
    model = plugin()
    report = evaluated(tmp_path, model, recipe=str(own))
    assert report.exit_code == 0
    context, media = model.shown["probe", 1]
    assert context == "Look.\n\nQ: colour 1? red/green/blue/white"
    assert len(media) == 1
    assert report.results["recipe"]["name"] == "mine"


def test_class_plugins_apply_no_limits(tmp_path: Path) -> None:
    picture_task(tmp_path, documents=1)
    own = tmp_path / "mine.yaml"
    own.write_text("models: []\ntasks: {probe: {media: {max_pixels: 100}}}\n", "utf-8")
    with pytest.raises(ModelError, match=r"media.max_pixels=100 \(it applies no such limit"):
        evaluated(tmp_path, Chat(), recipe=str(own))
    report = evaluated(tmp_path, Chat(), recipe=str(own), recipe_partial=True)
    assert list(report.results["recipe"]["missing"]["probe"]) == ["media.max_pixels=100"]
