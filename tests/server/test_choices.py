"""Models, tasks and options that can be chosen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval.config.options import options
from lmms_eval.errors import UnknownNameError
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.server.choices import ELSEWHERE, ModelChoices, TaskChoices, TaskSearch, option_choices
from lmms_eval.tasks.packs.store import VARIABLE
from tests.faults.command import in_process
from tests.tasks.packs.kit import PLAIN, ROWS, TASKS, wheel


@pytest.fixture(scope="module")
def tasks() -> TaskChoices:
    return TaskChoices()


def test_all_models_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    found = {one.name: one for one in ModelChoices().all()}
    assert {one.model_id for one in ModelRegistry().list_models()} <= set(found)
    own = [one for one in found.values() if one.sort != "Plugins"]  # other tests may have registered some
    assert {one.sort for one in own} == {"Local models", "Engines", "Services", "Checks"}
    assert all(one.text for one in own)
    assert found["anthropic"].missing == ("key: ANTHROPIC_API_KEY is not set where the server was started",)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-canary")
    again = {one.name: one for one in ModelChoices().all()}
    assert again["anthropic"].missing == ()
    assert "canary" not in repr(again)


def test_a_service_says_what_its_name_stands_for() -> None:
    arguments, fixed = ModelChoices().details("openrouter")
    assert fixed == {"base_url": "https://openrouter.ai/api/v1"}
    assert arguments[0].name == "model"
    with pytest.raises(UnknownNameError):
        ModelChoices().details("no_such_model")


def test_tasks_with_their_facts(tasks: TaskChoices) -> None:
    found = {one.name: one for one in tasks.all()}
    assert len(found) == len(tasks.all()) > 900
    assert (found["mmmu_val"].documents, found["mmmu_val"].modalities) == (900, ("image",))
    assert found["mmmu_val"].title.startswith("MMMU")
    assert {one.kind for one in found.values()} == {"task", "group", "tag"}
    assert all(one.size for one in found.values() if one.kind == "tag")
    details = tasks.details("mmmu_val")
    assert details["missing"] == [] and details["parts"][0]["documents"] == 900
    assert "task: mmmu_val" in tasks.yaml("mmmu_val")
    with pytest.raises(UnknownNameError):
        tasks.yaml("../../etc/passwd")


def test_names_of_packs_come_after_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "packs"))
    own = {"kitchen/tasks/own/gsm8k.yaml": PLAIN.format(name="gsm8k"), "kitchen/tasks/own/rows.jsonl": ROWS}
    assert in_process("packs", "add", wheel(tmp_path, files={**TASKS, **own})).code == 0
    choices = TaskChoices()
    for kind, names in {"group": ["kit_group"], "tag": ["kit_tag"], "task": ["kit_plain", "kitchen:gsm8k"]}.items():
        assert [one.name for one in choices.all() if one.kind == kind][-len(names) :] == names
    found = {one["name"]: one["size"] for one in choices.groups()}
    assert len(found) > 50 and "kit_group" not in found and "kit_tag" not in found
    kit = choices.search(TaskSearch(source="kitchen"))
    assert {one.name for one in kit.tasks} >= {"kit_group", "kit_tag", "kit_plain", "kitchen:gsm8k"}
    assert kit.sources == ("kitchen",) and {one.pack for one in kit.tasks} == {"kitchen"}
    assert choices.details("kit_group")["parts"][0]["name"] == "kit_plain"


def test_a_search_finds_the_name_itself_first(tasks: TaskChoices) -> None:
    found = tasks.search(TaskSearch("mmmu_val"))
    assert found.tasks[0].name == "mmmu_val"
    assert all(one.name.startswith("mmmu_val") for one in found.tasks[:4])
    assert found.total == len(tasks.all()) > found.found == len(found.tasks) > 3
    assert {one.name for one in tasks.search(TaskSearch("VAL mmmu")).tasks} >= {"mmmu_val"}
    few = tasks.search(TaskSearch(most=3))
    assert (len(few.tasks), few.found, few.hint) == (3, found.total, "")


def test_a_search_is_narrowed_by_facts(tasks: TaskChoices) -> None:
    assert {one.kind for one in tasks.search(TaskSearch(kind="tag", most=999)).tasks} == {"tag"}
    videos = tasks.search(TaskSearch(modality="video", most=999)).tasks
    assert len(videos) > 20 and all("video" in one.modalities for one in videos)
    assert all("judge" in one.needs for one in tasks.search(TaskSearch(need="judge", most=999)).tasks)
    assert all(not one.needs for one in tasks.search(TaskSearch(need="none", most=999)).tasks)
    assert tasks.search(TaskSearch(source="")).found == len(tasks.all())
    assert tasks.search(TaskSearch(source="kitchen")).found == 0


def test_a_search_without_results_says_what_the_name_could_mean(tasks: TaskChoices) -> None:
    assert "mmmu_val" in tasks.search(TaskSearch("mmmu_vql")).hint
    assert tasks.search(TaskSearch("no such words")).hint == ""


def test_facts_of_groups_are_found_when_they_are_read() -> None:
    choices = TaskChoices()
    first = choices.search(TaskSearch("mmmu_pro", kind="group"))
    assert (first.is_complete, first.tasks[0].size) == (False, 0)
    choices.groups()
    then = choices.search(TaskSearch("mmmu_pro", kind="group"))
    assert (then.is_complete, then.tasks[0].size, then.tasks[0].modalities) == (True, 2, ("image",))
    assert [one.documents for one in choices.named(["mmmu_pro", "no_such_task"])] == [3460]


def test_a_model_without_its_packages_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmms_eval.server.choices._is_installed", lambda name: name != "torch")
    found = ModelChoices().missing("hf")
    assert [text.partition(":")[0] for text in found] == ["package torch"]
    assert ModelChoices().missing("baseline") == ()


def test_what_scoring_needs_is_told(tasks: TaskChoices, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUDGE_MODEL", "MEGABENCH_OPEN_API_MODEL", "MEGABENCH_OPEN_API_URL"):
        monkeypatch.delenv(name, raising=False)
    judged = next(one.name for one in tasks.all() if "judge" in one.needs)
    assert any(text.startswith("judge:") for text in tasks.details(judged)["missing"])


def test_every_option_is_offered_unless_it_is_refused() -> None:
    expected = {one.name for one in options() if one.name not in ELSEWHERE}
    assert {one.name for one in option_choices()} == expected
    assert expected - {one.name for one in option_choices({"plugins"})} == {"plugins"}
    found = {one.name: one for one in option_choices()}
    assert found["limit"].is_usual and found["limit"].kind == "number"
    assert found["log_samples"].kind == "switch"
    assert found["image_encode_format"].choices == ("PNG", "JPEG", "WEBP")
    json.dumps([found[name].default for name in found])


def test_heavy_libraries_are_not_imported() -> None:
    code = (
        "import sys; from lmms_eval.server.choices import ModelChoices, TaskChoices, option_choices; "
        "from lmms_eval.server.page.preview import preview; "
        "ModelChoices().all(); TaskChoices().all(); option_choices(); preview({'model': 'hf', 'tasks': ['a']}); "
        "assert not {'torch', 'transformers', 'datasets', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
