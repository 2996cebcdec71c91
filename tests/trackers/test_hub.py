"""Pushes to a hub on loopback through its own package: names, files, cards, and what happens when it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lmms_eval.config.tracking import HUB, destination_arguments
from lmms_eval.errors import ConfigError
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.trackers.hub import repositories
from tests.cases import for_each
from tests.evaluation.kit import NAME, Told, config, fails_on, tasks
from tests.servers.writable_hub import LARGE, TOKEN, WritableHub, writable_hub

BOTH = "hub_results_org=birds,push_results_to_hub=true,push_samples_to_hub=true"
PRIVATE = "birds/lmms-eval-results-private"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WritableHub]:
    with writable_hub() as served:
        for name, value in served.environment(tmp_path / "home").items():
            monkeypatch.setenv(name, value)
        for name in ("HF_TOKEN_PATH", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_CACHE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield served


def pushed(tmp: Path, arguments: str = BOTH, model: Any = None, **over: Any) -> RunReport:
    values = {"hf_hub_log_args": arguments, "log_samples": True, "model_args": "pretrained=lab/finch", **over}
    return run(config(tmp, model="told", **values), model or Told())


def told(report: RunReport) -> tuple[str, str]:
    found = report.results["trackers"]["hub"]
    (line,) = [line for line in report.lines if line.startswith("hub")]
    return found["state"], line


def card(hub: WritableHub, repository: str = PRIVATE) -> dict[str, Any]:
    _, head, _ = hub.files(repository)["README.md"].decode().split("---\n", 2)
    return yaml.safe_load(head)


def test_results_and_samples_lie_there_as_they_lie_here(tmp_path: Path, hub: WritableHub) -> None:
    tasks(tmp_path, 60)
    report = pushed(tmp_path)
    assert told(report) == ("finished", f"hub: {hub.address}/datasets/{PRIVATE}")
    found = hub.files(PRIVATE)
    assert hub.repositories[PRIVATE].is_private
    (samples,), (results,) = tmp_path.rglob("*_samples_*.jsonl"), tmp_path.rglob("*_results.json")
    assert set(found) == {"README.md", f"lab__finch/{samples.name}", f"lab__finch/{results.name}"}
    assert found[f"lab__finch/{samples.name}"] == samples.read_bytes()
    assert json.loads(found[f"lab__finch/{results.name}"])["results"] == report.results["results"]
    assert samples.stat().st_size > LARGE  # it went apart from its commit
    assert next(iter(hub.large.values())) == samples.read_bytes()
    path = f"lab__finch/{samples.name}"
    splits = [{"split": samples.name[:15], "path": path}, {"split": "latest", "path": path}]
    assert card(hub)["configs"] == [{"config_name": f"lab__finch__{NAME}", "data_files": splits}]


def test_the_card_lets_the_samples_be_loaded(tmp_path: Path, hub: WritableHub) -> None:
    pushed(tmp_path)
    pushed(tmp_path)
    script = (
        "import datasets, sys; rows = datasets.load_dataset(sys.argv[1], sys.argv[2], split='latest'); "
        "print(list(rows['doc_id']), len(datasets.load_dataset(sys.argv[1], sys.argv[2])))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, PRIVATE, f"lab__finch__{NAME}"], check=True, capture_output=True, text=True
    )
    assert told.stdout.splitlines()[-1] == "[0, 1, 2, 3, 4, 5] 3"


def test_a_public_repository_has_the_name_as_given(tmp_path: Path, hub: WritableHub) -> None:
    arguments = "push_results_to_hub=true,public_repo=true,details_repo_name=samples,results_repo_name=numbers"
    pushed(tmp_path, f"{arguments},leaderboard_url=https://board.example,point_of_contact=ada@lab.example")
    assert list(hub.repositories) == ["ada/numbers"]
    assert not hub.repositories["ada/numbers"].is_private
    text = hub.files("ada/numbers")["README.md"].decode()
    assert "Leaderboard: https://board.example" in text
    assert "Contact: ada@lab.example" in text
    assert card(hub, "ada/numbers") == {"pretty_name": "numbers", "viewer": False}


def test_a_gated_repository_and_one_of_its_own_for_results(tmp_path: Path, hub: WritableHub) -> None:
    report = pushed(tmp_path, f"{BOTH},details_repo_name=d,results_repo_name=r,gated=true")
    assert {name: one.gated for name, one in hub.repositories.items()} == {
        "birds/d-private": "auto",
        "birds/r-private": "auto",
    }
    assert all(f"/birds/{name}-private" in told(report)[1] for name in "dr")
    assert {path.rpartition("_")[2] for path in hub.files("birds/r-private")} == {"README.md", "results.json"}


def test_the_next_run_is_added_and_other_text_stays(tmp_path: Path, hub: WritableHub) -> None:
    pushed(tmp_path)
    before = hub.files(PRIVATE)["README.md"].decode()
    hub.commit(
        PRIVATE, {"README.md": f"{before}\n## Ours\n".replace("pretty_name", "license: mit\npretty_name").encode()}
    )
    pushed(tmp_path)
    found = card(hub)
    (entry,) = found["configs"]
    names = sorted(path.name for path in tmp_path.rglob("*_samples_*.jsonl"))
    assert [one["split"] for one in entry["data_files"]] == [*(name[:15] for name in names), "latest"]
    assert entry["data_files"][-1]["path"].endswith(names[-1])
    assert found["license"] == "mit"
    assert hub.files(PRIVATE)["README.md"].decode().endswith("## Ours\n")
    assert hub.files(PRIVATE)["README.md"].decode().count("begin lmms_eval") == 1


def test_a_commit_of_somebody_else_meanwhile_stays(tmp_path: Path, hub: WritableHub) -> None:
    hub.meanwhile = {"README.md": b"---\nlicense: mit\n---\nTheirs.\n"}
    assert told(pushed(tmp_path))[0] == "finished"
    assert card(hub)["license"] == "mit"
    assert "Theirs." in hub.files(PRIVATE)["README.md"].decode()
    assert hub.asked_for.count("commit") == 2


def test_only_runs_that_have_succeeded_are_pushed(tmp_path: Path, hub: WritableHub) -> None:
    report = pushed(tmp_path, model=Told(fails_on(1)))
    assert told(report) == ("finished", "hub: nothing was pushed, since the run is withheld")
    assert not hub.repositories
    pushed(tmp_path)
    assert len(hub.repositories[PRIVATE].messages) == 1


def test_a_push_that_fails_is_told_and_the_results_are_kept(tmp_path: Path, hub: WritableHub) -> None:
    hub.faults = {"commit": [403]}
    report = pushed(tmp_path)
    state, line = told(report)
    assert (report.exit_code, state) == (0, "failed")
    assert "403 Forbidden" in line
    assert f"hf upload {PRIVATE} " in line
    assert line.endswith("the results here are complete")
    (results,) = tmp_path.rglob("*_results.json")
    assert json.loads(results.read_text())["trackers"]["hub"]["state"] == "failed"


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ({"HF_TOKEN": ""}, "there is no token: set HF_TOKEN"),
        ({"HF_TOKEN": "hf_wrong"}, "the token is refused"),
        ({"args": BOTH.replace("birds", "fish")}, "the token's user ada is not in the organisation fish"),
    ],
)
def test_a_token_that_will_not_do_is_told(
    tmp_path: Path, hub: WritableHub, monkeypatch: pytest.MonkeyPatch, over: dict[str, str], said: str
) -> None:
    if "HF_TOKEN" in over:
        monkeypatch.setenv("HF_TOKEN", over["HF_TOKEN"])
    report = pushed(tmp_path, over.get("args", BOTH))
    assert report.exit_code == 0
    assert said in told(report)[1]
    assert not hub.repositories


def test_a_hub_that_was_away_at_the_start_gets_the_results(tmp_path: Path, hub: WritableHub) -> None:
    hub.faults = {"whoami": [503]}
    assert told(pushed(tmp_path))[0] == "finished"
    assert PRIVATE in hub.repositories


def test_a_hub_that_is_away_ends_no_run(tmp_path: Path, hub: WritableHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    report = pushed(tmp_path)
    assert (report.exit_code, told(report)[0]) == (0, "failed")


def test_the_token_is_in_no_file_and_no_line(tmp_path: Path, hub: WritableHub) -> None:
    hub.faults = {"commit": [403]}
    report = pushed(tmp_path)
    assert TOKEN not in "\n".join(report.lines)
    pushed(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()] == []
    assert [name for name, content in hub.files(PRIVATE).items() if TOKEN.encode() in content] == []


def test_the_older_name_is_that_of_both_repositories_where_they_have_none() -> None:
    def named(text: str) -> tuple[str, str]:
        results, samples = repositories(destination_arguments(HUB, f"{BOTH},{text}"))
        return samples, results

    assert named("hub_repo_name=old") == ("old-private", "old-private")
    assert named("hub_repo_name=old,details_repo_name=new") == ("new-private", "old-private")
    assert named("details_repo_name=new") == ("new-private", "new-private")
    assert named("details_repo_name=new-private,public_repo=false") == ("new-private", "new-private")
    assert named("details_repo_name=new,public_repo=true") == ("new", "new")


@for_each(
    ("arguments", "over", "said"),
    [
        (BOTH, {"log_samples": False}, "push_samples_to_hub needs --log_samples"),
        (BOTH, {"output_path": None, "log_samples": False}, "name their folder with --output_path"),
        ("hub_results_org=birds", {}, "it pushes nothing without push_results_to_hub=true"),
        (f"{BOTH},details_repo_name=birds/d", {}, "a name without its organisation"),
        (f"{BOTH},token=hf_x", {}, "token holds a secret, which is read from the environment: HF_TOKEN"),
        (f"{BOTH},pubic_repo=true", {}, "did you mean public_repo?"),
        (f"{BOTH},gated=perhaps", {}, "gated: give true or false"),
    ],
)
def test_arguments_that_cannot_be_meant_end_the_run_before_it_begins(
    tmp_path: Path, arguments: str, over: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        pushed(tmp_path, arguments, **over)
    assert said in str(raised.value)
