from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loguru import logger

from lmms_eval.api.model import lmms
from lmms_eval.engine.team import Place
from lmms_eval.errors import AbsentDataError, DataError, ModelError, TaskError, UnknownNameError, UsageError
from tests.cases import for_each
from tests.evaluation.kit import NAME, Told, config, inputs_of, tasks
from tests.tasks.kit import BASE, write_rows, write_yaml


class Plugin(lmms):
    """A class-interface model as a program holds it."""

    def generate_until(self, requests: list[Any]) -> list[Any]:
        return ["" for _ in requests]

    loglikelihood = generate_until_multi_round = generate_until


def test_what_a_run_needs(tmp_path: Path) -> None:
    collected = inputs_of(config(tmp_path, limit=4, offset=1, model_args="strategy=gold"))
    (plan,) = collected.plans
    assert (plan.task.name, plan.doc_ids) == (NAME, range(1, 5))
    assert collected.choice.backend == "lmms_eval.models.baseline.Baseline (chat)"
    assert collected.is_resumable


def key(tmp: Path, **over: Any) -> str:
    return inputs_of(config(tmp, **over)).key


@for_each(
    "change",
    [
        {"model_args": "strategy=constant"},
        {"limit": 2},
        {"offset": 1},
        {"repeats": 2},
        {"gen_kwargs": "temperature=1"},
        {"system_instruction": "be brief"},
        {"seed": 7},
    ],
    ids=str,
)
def test_what_can_change_an_answer_changes_the_key(tmp_path: Path, change: dict[str, Any]) -> None:
    assert key(tmp_path, **change) != key(tmp_path)


@for_each(
    "change",
    [
        {"output_path": None},
        {"log_samples": True},
        {"error_budget": 0.5},
        {"verbosity": "DEBUG"},
        {"bootstrap_iters": 10},
        {"batch_size": 8},
        {"grace": 1.0},
        {"reasoning_tags": "none"},
    ],
    ids=str,
)
def test_what_cannot_change_an_answer_does_not(tmp_path: Path, change: dict[str, Any]) -> None:
    assert key(tmp_path, **change) == key(tmp_path)


def edit(tmp: Path, file: str, old: str, new: str) -> None:
    path = tmp / "tasks" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@for_each(
    "change",
    [
        lambda tmp: edit(tmp, f"{NAME}.jsonl", "Question 3", "Question three"),
        lambda tmp: edit(tmp, f"{NAME}.yaml", "max_new_tokens: 16", "max_new_tokens: 17"),
        lambda tmp: edit(tmp, f"{NAME}.yaml", "doc_to_text: question", "doc_to_text: '{{question}}!'"),
    ],
    ids=["data", "generation", "prompt"],
)
def test_data_and_task_are_part_of_the_key(tmp_path: Path, change: Callable[[Path], None]) -> None:
    before = key(tmp_path)
    change(tmp_path)
    assert key(tmp_path) != before


def test_what_only_scores_changes_the_scoring_key_alone(tmp_path: Path) -> None:
    one = inputs_of(config(tmp_path))
    other = inputs_of(config(tmp_path, reasoning_tags="none"))
    assert one.key == other.key and one.scoring_key != other.scoring_key


def test_names_are_checked_before_data_and_data_before_the_model(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown model 'opnai'; did you mean openai"):
        inputs_of(config(tmp_path, model="opnai", tasks="none"))
    with pytest.raises(UnknownNameError, match="unknown task 'bench_txt'"):
        inputs_of(config(tmp_path, tasks="bench_txt", model_args="strategy=none"))
    (tmp_path / "tasks" / f"{NAME}.jsonl").unlink()
    with pytest.raises(DataError, match=f"{NAME}.jsonl"):
        inputs_of(config(tmp_path, model_args="strategy=none"))
    tasks(tmp_path)
    with pytest.raises(ModelError, match="strategy"):
        inputs_of(config(tmp_path, model_args="strategy=none"))


@pytest.fixture
def caplog_lines() -> Iterator[list[str]]:
    """What is logged at INFO."""
    lines: list[str] = []
    sink = logger.add(lambda message: lines.append(str(message).rstrip("\n")), level="INFO", format="{message}")
    yield lines
    logger.remove(sink)


def test_a_run_says_what_it_does_before_it_loads_anything(tmp_path: Path, caplog_lines: list[str]) -> None:
    inputs_of(config(tmp_path, model_args="strategy=gold", output_path=str(tmp_path / "my out"), limit=2))
    model, output, size, *_ = caplog_lines
    assert model == f"model baseline (strategy=gold), tasks {NAME}"
    out = f"'{tmp_path}/my out'"
    assert output == f"output in {out}; to watch it: lmms-eval view {out} (pages), lmms-eval tui {out} (terminal)"
    assert size == f"2 documents of {NAME}"
    caplog_lines.clear()
    inputs_of(config(tmp_path, output_path=None))
    assert caplog_lines[1].startswith("no --output_path: results are printed, not written")
    caplog_lines.clear()
    for over in ({"model": "no_such"}, {"tasks": "no_such"}, {"model_args": "strategi=gold"}, {"model": "hf"}):
        with pytest.raises(UsageError):
            inputs_of(config(tmp_path, **over))
    assert caplog_lines == []  # a refusal is one line


def test_a_model_that_cannot_answer_a_task_is_refused_before_it_is_asked(tmp_path: Path) -> None:
    folder = tasks(tmp_path)
    edit(tmp_path, f"{NAME}.yaml", "output_type: generate_until", "output_type: loglikelihood")
    edit(tmp_path, f"{NAME}.yaml", "metric: exact_match", "metric: perplexity")
    edit(tmp_path, f"{NAME}.yaml", "generation_kwargs: {max_new_tokens: 16, until: []}\n", "")
    assert folder.is_dir()
    with pytest.raises(ModelError, match="needs loglikelihood requests, which model 'told' does not answer"):
        inputs_of(config(tmp_path, model="told"), Told())


def test_a_task_whose_own_code_raises_is_an_error_of_the_task(tmp_path: Path) -> None:
    tasks(tmp_path)
    edit(tmp_path, f"{NAME}.yaml", "test_split", "process_docs: !function utils.broken\ntest_split")
    (tmp_path / "tasks" / "utils.py").write_text("def broken(docs):\n    return docs.nonsense()\n")
    with pytest.raises(
        TaskError, match=r"preparing its data: process_docs raised AttributeError: .* \(.*utils.py:\d+\)"
    ):
        inputs_of(config(tmp_path))


def test_a_model_object_is_taken_as_it_is_and_stays_the_callers(tmp_path: Path) -> None:
    model = Told()
    collected = inputs_of(config(tmp_path, model="told"), model)
    assert collected.model is model and not model.closed
    assert collected.choice.backend == "tests.evaluation.kit.Told (chat)"


@for_each(
    ("model", "over", "resumable"),
    [
        (lambda: Told(name="a"), {}, True),
        (lambda: Told(name=""), {}, False),
        (lambda: Told(name=""), {"model_args": "step=1000"}, True),
        (lambda: Told(name=""), {"resume": True}, True),
        (Plugin, {}, False),
        (Plugin, {"model_args": "pretrained=x"}, True),
    ],
    ids=["identity", "none", "arguments", "resume", "plugin", "plugin with arguments"],
)
def test_an_object_that_nothing_tells_from_others_never_goes_on_with_their_answers(
    tmp_path: Path, model: Callable[[], Any], over: dict[str, Any], resumable: bool
) -> None:
    first, second = (inputs_of(config(tmp_path, model="told", **over), model()) for _ in range(2))
    assert first.is_resumable is second.is_resumable is resumable
    assert (first.key == second.key) is resumable
    assert first.scoring_key == second.scoring_key


def test_one_answer_asked_for_and_one_by_default_are_the_same_run(tmp_path: Path) -> None:
    assert key(tmp_path, repeats=1) == key(tmp_path)


def test_a_class_plugin_cannot_be_checked_alone(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="makes its batches itself") as raised:
        inputs_of(config(tmp_path, check_batch=2), Plugin())
    assert raised.value.exit_code == 2


def test_collective_forward_passes_cannot_be_checked_by_one_process(tmp_path: Path) -> None:
    model = Told()
    model.collective_forward = True
    assert inputs_of(config(tmp_path, check_batch=2), model).model is model
    with pytest.raises(ModelError, match="need all 2 processes"):
        inputs_of(config(tmp_path, check_batch=2), model, Place(0, 2))


def server_key(tmp: Path, more: str) -> str:
    return key(tmp, model="openai", model_args=f"model=m,base_url=http://127.0.0.1:1/v1{more}")


def test_arguments_without_effect_are_not_part_of_the_key(tmp_path: Path) -> None:
    plain = server_key(tmp_path, "")
    assert server_key(tmp_path, ",conv_template=a,truncation=true,mm_spatial_pool_mode=max") == plain
    assert len({plain, *(server_key(tmp_path, f",{one}") for one in EFFECTIVE)}) == 1 + len(EFFECTIVE)


EFFECTIVE = (
    "num_frames=3", "total_pixels=4096", "max_image_size=64", "min_pixels=64", "max_size_in_mb=1",
    "enable_thinking=false",
)  # fmt: skip


def test_a_plugins_own_argument_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "pack_of_args"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "models.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    keys = {
        key(tmp_path, model="own", plugins="pack_of_args", model_args=f"conv_template={value}") for value in ("a", "b")
    }
    assert len(keys) == 2


PLUGIN = """
from lmms_eval.api.model import lmms

AVAILABLE_MODELS = {"own": "pack_of_args.models.Own"}


class Own(lmms):
    def __init__(self, conv_template="", **others):
        super().__init__()

    def generate_until(self, requests):
        return ["" for _ in requests]

    loglikelihood = generate_until_multi_round = generate_until
"""


def test_a_baseline_without_samples_of_any_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / "earlier").mkdir()
    with pytest.raises(DataError, match=f"it has no samples of {NAME}"):
        inputs_of(config(tmp_path, baseline=str(tmp_path / "earlier"), model_args="strategy=none"))
    file = tmp_path / "earlier" / f"20250101_000000_samples_{NAME}.jsonl"
    file.write_text('{"doc_id": 0, "filtered_resps": ["a"], "target": "a"}\n')
    assert inputs_of(config(tmp_path, baseline=str(tmp_path / "earlier"))).baselines == {NAME: file}


def test_a_preset_names_the_samples_of_each_task(tmp_path: Path) -> None:
    presets = tmp_path / "presets.yaml"
    presets.write_text(f"mine: {{{NAME}: samples.jsonl}}\n")
    (tmp_path / "samples.jsonl").write_text("")
    for text in ("mine", f"mine:{NAME}"):
        found = inputs_of(config(tmp_path, baseline=text, baseline_presets=str(presets))).baselines
        assert found == {NAME: tmp_path / "samples.jsonl"}


@pytest.fixture
def of_videos(tmp_path: Path) -> Path:
    """A task of two documents with a video each, of which the first is there."""
    folder = tmp_path / "videos"
    (folder / "there.mp4").parent.mkdir()
    (folder / "there.mp4").touch()
    rows = [{"q": "?", "a": "yes", "video": str(folder / name)} for name in ("there.mp4", "gone.mp4")]
    write_rows(folder, rows)
    keys = {"doc_to_text": "q", "doc_to_target": "a", "doc_to_visual": "video", "media_archive": "2 GB"}
    write_yaml(folder / "probe.yaml", {**BASE, **keys})
    return folder


def test_a_missing_file_is_found_before_the_model_is_built(of_videos: Path, tmp_path: Path) -> None:
    asked = {"tasks": "probe", "include_path": str(of_videos)}
    with pytest.raises(AbsentDataError, match=r"'probe': the files of 1 of 2 documents .*gone\.mp4"):
        inputs_of(config(tmp_path, **asked, model_args="strategy=gold,text=unknown"))
    assert inputs_of(config(tmp_path, **asked, limit=1)).plans[0].requested == 1


@pytest.mark.parametrize("over", [{"model_args": "strategy=constant"}, {"no_media": True}])
def test_answers_without_media_need_no_files(of_videos: Path, tmp_path: Path, over: dict[str, Any]) -> None:
    made = inputs_of(config(tmp_path, tasks="probe", include_path=str(of_videos), **over))
    assert made.plans[0].requested == 2
