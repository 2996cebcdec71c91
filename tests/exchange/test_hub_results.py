"""Evaluation results in the hub's forms, by the hub's own package, and their pull request to a hub on loopback."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from lmms_eval.cli.main import main
from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.exchange.hub_results import CARD, FOLDER, HubResults, hub_results, push_results
from lmms_eval.results import load
from tests.docs.pages import ROOT, blocks
from tests.results.runs import document, write_run
from tests.servers.writable_hub import TOKEN, WritableHub, writable_hub

REVISION = "c0ffee" * 6 + "abcd"
MODEL = "lab/finch"


def config(path: str = "birds/quiz", **more: Any) -> dict[str, Any]:
    return {
        "score_key": "score", "dataset_path": path, "test_split": "test",
        "metric_list": [{"metric": "acc", "aggregation": "mean"}], **more,
    }  # fmt: skip


def results(**parts: Any) -> dict[str, Any]:
    """A results document over a data set of the hub."""
    return document(
        **{
            "results": {"quiz": {"alias": "quiz", "graded,none": 0.75, "acc,none": 0.5}},
            "configs": {"quiz": config(dataset_kwargs={"revision": REVISION})},
            "intervals": {"quiz": {"acc,none": {"low": 0.1, "high": 0.9, "method": "wilson"}}},
            "n-samples": {"quiz": {"original": 4, "effective": 4}},
            "sent_media": {"quiz": {"documents": 4, "pictures": {"min": 1, "median": 1, "max": 1}}},
            "end_time": 1_700_000_000,
            **parts,
        }
    )


def of_run(tmp: Path, task_ids: dict[str, str] | None = None, url: str = "", **parts: Any) -> HubResults:
    return hub_results(load(write_run(tmp / "run", results=results(**parts))), task_ids or {}, url)


def entries(content: bytes) -> list[Any]:
    return parse_eval_result_entries(yaml.safe_load(content))


def test_an_entry_is_read_back_by_the_hubs_own_package(tmp_path: Path) -> None:
    found = of_run(tmp_path, {"quiz": "hard"}, "https://example.org/run")
    assert list(found.files()) == [f"{FOLDER}/quiz.yaml", "model-index.yaml"]
    (entry,) = entries(found.files()[f"{FOLDER}/quiz.yaml"])
    assert entry == found.entries["quiz.yaml"][0]
    assert (entry.dataset_id, entry.task_id, entry.value) == ("birds/quiz", "hard", 0.5)
    assert (entry.dataset_revision, entry.date) == (REVISION, "2023-11-14T22:13:20Z")
    assert "metric acc; 3 documents; 95% interval [0.1000, 0.9000] (wilson); 0-shot; 1 failed" in entry.notes
    (other,) = of_run(tmp_path, recipe={"name": "finch-report"}).entries["quiz.yaml"]
    assert "; recipe finch-report; " in str(other.notes)
    assert entry.source_url == "https://example.org/run"


def test_a_model_card_has_every_metric(tmp_path: Path) -> None:
    index = yaml.safe_load(of_run(tmp_path).files()["model-index.yaml"])["model-index"]
    (result,) = index[0]["results"]
    assert result["task"]["type"] == "image-text-to-text"
    assert result["dataset"]["type"] == "birds/quiz" and result["dataset"]["revision"] == REVISION
    assert {one["type"]: one["value"] for one in result["metrics"]} == {"acc": 0.5, "graded": 0.75}


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (
            {"results": {"quiz": {"alias": "quiz", "acc,none": None}}},
            "withheld, so not written: quiz acc: withheld (1 ",
        ),
        ({"configs": {"quiz": config("json")}}, "not written: quiz: its data are not a data set of the hub"),
        ({"configs": {"quiz": config("gsm8k")}}, "not written: quiz: its data are not a data set of the hub"),
        (
            {"n-samples": {"quiz": {"original": 900, "effective": 4}}},
            "not written: quiz: it is over a part of its split (4 of 900 documents)",
        ),
        (
            {"early_stop": {"quiz": {"asked": 3, "of": 4, "order": "o", "rule": "ci=0.1"}}},
            "not written: quiz: it is over a part of its split (3 of 4 documents, by the rule ci=0.1)",
        ),
    ],
)
def test_numbers_that_the_form_cannot_hold_are_left_out(tmp_path: Path, parts: dict[str, Any], reason: str) -> None:
    found = of_run(tmp_path, **parts)
    assert found.files() == {}
    (note,) = found.notes
    assert note.startswith(reason)


def test_a_group_over_one_data_set_is_an_entry_of_it(tmp_path: Path) -> None:
    groups = {"birds": {"alias": "birds", "acc,none": 0.4}}
    both = {"quiz": {"alias": "quiz", "acc,none": 0.5}, "more": {"alias": "more", "acc,none": 0.3}}
    parts = {"results": {**groups, **both}, "groups": groups, "group_subtasks": {"birds": ["quiz", "more"]}}
    one = of_run(tmp_path, **parts, configs={"quiz": config(), "more": config()})
    assert [entry.task_id for entry in one.entries["birds.yaml"]] == ["birds", "quiz", "more"]
    two = of_run(tmp_path, **parts, configs={"quiz": config(), "more": config("birds/other")})
    assert [entry.dataset_id for entry in two.entries["birds.yaml"]] == ["birds/quiz", "birds/other"]
    assert two.notes == ["not written: birds: its tasks have several data sets"]


def test_a_local_copy_is_stated(tmp_path: Path) -> None:
    configs = {"quiz": config()}
    found = of_run(tmp_path, configs=configs, data_files={"quiz": ["/data/quiz/test.parquet"]})
    assert str(found.entries["quiz.yaml"][0].notes).endswith("; data read from local files")
    cached = f"/home/me/.cache/huggingface/hub/datasets--birds--quiz/snapshots/{'a' * 40}/test.parquet"
    (entry,) = of_run(tmp_path, configs=configs, data_files={"quiz": [cached]}).entries["quiz.yaml"]
    assert entry.dataset_revision == "a" * 40 and "local" not in str(entry.notes)


def test_hostile_names_stay_texts(tmp_path: Path) -> None:
    name = "quiz: [x]\n- {a: &b !!python/object:os.system 'c'} # \x1b\ud800"
    metrics = {"alias": name, "acc,none": 0.5}
    found = of_run(tmp_path, results={name: metrics}, configs={name: config()}, outcomes={})
    (path, content), _ = found.files().items()
    assert (Path("/x") / path).resolve().parent == Path("/x") / FOLDER
    assert entries(content)[0].task_id == name


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WritableHub]:
    with writable_hub() as served:
        for variable, value in served.environment(tmp_path / "home").items():
            monkeypatch.setenv(variable, value)
        monkeypatch.delenv("HF_TOKEN_PATH", raising=False)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", served.address)
        template = f"{served.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        served.data_sets = {MODEL: {}}
        yield served


def test_results_are_proposed_as_one_pull_request(tmp_path: Path, hub: WritableHub) -> None:
    address = push_results(of_run(tmp_path), MODEL)
    assert address == f"{hub.address}/{MODEL}/discussions/1"
    (files,) = hub.proposed
    assert set(files) == {f"{FOLDER}/quiz.yaml", CARD}
    assert hub.files(MODEL) == {}
    assert ModelCard(files[CARD].decode()).data.eval_results[0].metric_type == "acc"


def test_what_is_there_stays(tmp_path: Path, hub: WritableHub) -> None:
    found = of_run(tmp_path)
    other = {"dataset": {"id": "cais/hle", "task_id": "default"}, "value": 3.5}
    same = {"dataset": {"id": "birds/quiz", "task_id": "quiz"}, "value": 0.1}
    card = "---\nlicense: mit\ntags:\n- birds\n---\n# Finch\n\nOur words: \u00e4.\n"
    hub.data_sets = {MODEL: {f"{FOLDER}/quiz.yaml": yaml.safe_dump([other, same]).encode(), CARD: card.encode()}}
    push_results(found, MODEL)
    push_results(found, MODEL)
    files = hub.proposed[-1]
    values = {one.dataset_id: one.value for one in entries(files[f"{FOLDER}/quiz.yaml"])}
    assert values == {"cais/hle": 3.5, "birds/quiz": 0.5}
    written = ModelCard(files[CARD].decode())
    assert written.data.license == "mit" and written.text == "# Finch\n\nOur words: \u00e4.\n"
    hub.data_sets = {MODEL: files}
    push_results(found, MODEL)
    assert len(ModelCard(hub.proposed[-1][CARD].decode()).data.eval_results) == 2


def test_a_push_that_fails_is_one_line_without_the_token(
    tmp_path: Path, hub: WritableHub, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    found = of_run(tmp_path)
    hub.faults["commit"] = [403]
    with pytest.raises(LmmsEvalError, match=f"{MODEL}: nothing was pushed: ") as caught:
        push_results(found, MODEL)
    assert TOKEN not in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(LmmsEvalError, match="lab/wren: nothing was pushed"):
        push_results(found, "lab/wren")
    hub.data_sets = {MODEL: {f"{FOLDER}/quiz.yaml": b"{a: [}"}}
    with pytest.raises(LmmsEvalError, match=r"a file of \.eval_results there cannot be read"):
        push_results(found, MODEL)
    assert hub.proposed == []
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UsageError, match="--push needs a token"):
        push_results(found, MODEL)


def test_the_commands_of_the_page(tmp_path: Path, hub: WritableHub, monkeypatch: pytest.MonkeyPatch) -> None:
    task = {"configs": {"mmmu_val": config("lmms-lab-encoder/MMMU")}, "results": {"mmmu_val": {"acc,none": 0.5}}}
    counts = {"n-samples": {"mmmu_val": {"original": 4, "effective": 4}}}
    write_run(tmp_path / "results", results=results(**task, **counts))
    monkeypatch.chdir(tmp_path)
    (block,) = [block for block in blocks(ROOT / "docs/exchange.md") if __name__.split(".")[-1] in block.mark]
    for line in block.text.splitlines():
        assert main(shlex.split(line)[1:]) == 0
    assert len(hub.proposed) == 1
    (entry,) = entries(Path("hub-eval-results", FOLDER, "mmmu_val.yaml").read_bytes())
    assert (entry.dataset_id, entry.task_id, entry.value) == ("lmms-lab-encoder/MMMU", "validation", 0.5)


def test_the_command_writes_and_pushes(
    tmp_path: Path, hub: WritableHub, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    path = write_run(tmp_path / "run", results=results())
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(path), "--to", "hub-eval-results", "--push", MODEL]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "hub-eval-results/.eval_results/quiz.yaml",
        "hub-eval-results/model-index.yaml",
        f"pull request: {hub.address}/{MODEL}/discussions/1",
    ]
    assert TOKEN not in said.out + said.err
    for words, reason in [
        (["--task_id", "quiz"], "--task_id quiz: write TASK=ID"),
        (["--task_id", "other=x"], "--task_id other=...: the run has no number of that task; it has: quiz"),
        (["quiz"], "writes all tasks of the run: leave quiz out"),
        (["--push"], "nothing was pushed"),
        (["--developer", "x"], "--developer: only with --to eee"),
    ]:
        assert main(["export", str(path), *words, "--to", "hub-eval-results"]) != 0
        assert reason in capsys.readouterr().err
    hub.data_sets = {"org/model": {}}
    assert main(["export", str(path), "--to", "hub-eval-results", "--push"]) == 0
    assert "/org/model/discussions/2" in capsys.readouterr().out
    local = write_run(tmp_path / "local", results=results(model_name="/models/finch"))
    assert main(["export", str(local), "--to", "hub-eval-results", "--push"]) == 2
    assert "/models/finch is not the name of a repository" in capsys.readouterr().err
