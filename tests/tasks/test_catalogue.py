from __future__ import annotations

import fnmatch
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmms_eval.tasks
from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import UnknownNameError, UsageError
from lmms_eval.tasks import select_tasks
from lmms_eval.tasks.catalogue import FAMILY_TASKS, Catalogue, IndexEntry
from lmms_eval.utils.files import read_table
from tests.cases import for_each


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_kinds_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path, "_tmpl", "tag: shared\n")
    write(tmp_path, "_base.yaml", "dataset_path: json\n")
    write(tmp_path, "a.yaml", "include: _tmpl\ntask: a\noutput_type: multiple_choice\n")
    write(tmp_path, "deep/er/b.yaml", "task: b\ngroup: old_spelling\n")
    write(tmp_path, "c.yaml", "task: c\nclass: !function utils.C\n")
    write(tmp_path, "g.yaml", "group: g\ntask: [a, b]\n")
    write(tmp_path, ".hidden/h.yaml", "task: hidden\n")
    index = Catalogue([tmp_path], include_defaults=False)
    assert sorted(index.tasks) == ["a", "b", "c"]
    assert sorted(index.groups) == ["g"]
    assert index.tags == {"shared": ["a"], "old_spelling": ["b"]}
    assert index.tasks["a"].output_type == "multiple_choice"
    assert index.names() == ["a", "b", "c", "g", "old_spelling", "shared"]


def test_a_broken_file_does_not_break_the_others(tmp_path: Path) -> None:
    write(tmp_path, "bad.yaml", "task: [x\n")
    write(tmp_path, "good.yaml", "task: good\n")
    index = Catalogue([tmp_path], include_defaults=False)
    assert list(index.tasks) == ["good"]
    assert "bad.yaml" in index.notices[0]
    with pytest.raises(UnknownNameError, match=r"bad\.yaml"):
        index.match(["bad"])


def test_a_byte_order_mark_is_no_part_of_a_task(tmp_path: Path) -> None:
    write(tmp_path, "_base", "\ufefftag: shared\n")
    write(tmp_path, "a.yaml", "\ufefftask: a\ninclude: _base\n")
    index = Catalogue([tmp_path], include_defaults=False)
    assert list(index.tasks) == ["a"] and index.tags == {"shared": ["a"]}


def test_files_that_are_no_task_are_counted_in_one_line_and_named_for_debugging(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, "good.yaml", "task: good\n")
    write(tmp_path, "_base.yaml", "dataset_path: json\n")
    write(tmp_path, "other.yml", "task: other\n")
    write(tmp_path, ".hidden/h.yaml", "task: hidden\n")
    write(tmp_path, "bad.yaml", "task: [x\n")
    write(tmp_path, "bytes.yaml", "").write_bytes(b"task: \xff\n")
    with caplog.at_level("DEBUG", logger="lmms_eval"):
        Catalogue([tmp_path], include_defaults=False)
    shown = [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"]
    named = [record.getMessage() for record in caplog.records if record.levelname == "DEBUG"]
    assert shown == [
        f"{tmp_path}: 5 of 6 YAML files are left out: 1 hidden, 1 without a task or group, 2 cannot be read, "
        f"1 named .yml instead of .yaml; --verbosity DEBUG names them; the first error: {tmp_path}/bad.yaml, line 2: "
        "not valid task YAML: did not find expected ',' or ']'"
    ]
    for name in ("_base.yaml", "other.yml", "h.yaml", "bad.yaml", "bytes.yaml"):
        assert sum(f"/{name}" in line for line in named) == 1
    assert any("bad.yaml, line 2: not valid task YAML" in line for line in named)


def test_a_folder_of_tasks_alone_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, "good.yaml", "task: good\n")
    with caplog.at_level("DEBUG", logger="lmms_eval"):
        Catalogue([tmp_path], include_defaults=False)
    assert not caplog.messages


def test_include_path_beats_built_in_tasks_with_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built_in = write(tmp_path, "built_in/x.yaml", "task: x\ntag: old\n").parent
    mine = write(tmp_path, "mine/x.yaml", "task: x\n")
    monkeypatch.setattr("lmms_eval.tasks.catalogue.PACKAGE_FOLDER", built_in)
    index = Catalogue([mine.parent])
    assert index.tasks["x"].file == mine
    assert index.tags == {}
    assert index.notices == [f"task 'x' of {mine} replaces the one in lmms_eval/tasks/x.yaml"]


def test_plugin_packages_may_have_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "with_tasks/__init__.py", "")
    write(tmp_path, "with_tasks/tasks/__init__.py", "")
    write(tmp_path, "with_tasks/tasks/p.yaml", "task: plugin_task\n")
    write(tmp_path, "without_tasks/__init__.py", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    index = Catalogue(plugins=["with_tasks", "without_tasks"], include_defaults=False)
    assert list(index.tasks) == ["plugin_task"]
    with pytest.raises(UsageError, match=r"'no_such_package'.*PYTHONPATH"):
        Catalogue(plugins=["no_such_package"])


def test_missing_include_path() -> None:
    with pytest.raises(UsageError, match="--include_path /no/such: there is no such folder"):
        Catalogue(["/no/such"])


def test_unknown_names_are_answered_with_close_ones(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "task: docvqa_val\n")
    with pytest.raises(UnknownNameError, match=r"unknown task 'docvqa_vla'; did you mean docvqa_val\?"):
        Catalogue([tmp_path], include_defaults=False).match(["docvqa_vla"])


def test_a_task_of_the_family_is_told_with_the_way_to_run_it(tmp_path: Path) -> None:
    name, data_set = "ai2d_lite", "lmms-lab-encoder/LMMs-Eval-Lite"
    write(tmp_path, "other.yaml", f"task: {name}_own\n")
    with pytest.raises(UnknownNameError) as caught:
        Catalogue([tmp_path]).match([name])
    assert str(caught.value) == (
        f"unknown task {name!r}: it is the family's (data set {data_set}) and is not shipped with this version; to run "
        f"it, give the folder that holds the family's task files, lmms_eval/tasks in its sources: --include_path DIR "
        f"--tasks {name}"
    )


def test_a_wildcard_names_the_tasks_of_the_family_that_it_means() -> None:
    with pytest.raises(UsageError, match=r"matches no name of \d+.*the family's ai2d_lite.*--incl"):
        Catalogue().match(["ai2d_l*"])


def test_an_included_task_of_the_family_is_there(tmp_path: Path) -> None:
    write(tmp_path, "ai2d/ai2d_lite.yaml", "task: ai2d_lite\n")
    assert Catalogue([tmp_path]).match(["ai2d_lite"]) == ["ai2d_lite"]


def test_names_of_the_family_that_are_shipped_are_not_listed_as_absent() -> None:
    assert not set(Catalogue().names()) & {row["name"] for row in read_table(FAMILY_TASKS)}


def test_a_wildcard_without_match_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "task: Abc\n")
    index = Catalogue([tmp_path], include_defaults=False)
    assert index.match(["A*"]) == ["Abc"]
    with pytest.raises(UsageError, match=r"--tasks a\*: the wildcard matches no name of 1"):
        index.match(["a*"])


NAMES = st.text(st.sampled_from("abAB_-1"), min_size=1, max_size=5)
PATTERNS = st.text(st.sampled_from("abAB_-1*?[]!"), min_size=1, max_size=5)


@given(st.sets(NAMES, min_size=1, max_size=8), PATTERNS)
def test_wildcards_follow_fnmatch(names: set[str], pattern: str) -> None:
    index = Catalogue(include_defaults=False)
    for name in names:
        index.tasks[name] = IndexEntry(name, "task", Path(f"{name}.yaml"))
    wanted = sorted(name for name in names if fnmatch.fnmatchcase(name, pattern))
    if pattern in names:
        wanted = [pattern]
    is_wildcard = any(sign in pattern for sign in "*?[")
    try:
        found = index.match([pattern, pattern])
    except UnknownNameError:
        assert not is_wildcard and pattern not in names
    except UsageError:
        assert is_wildcard and not wanted
    else:
        assert found == wanted


def test_listing_fifty_files_is_fast(tmp_path: Path) -> None:
    body = "dataset_path: json\nmetric_list:\n" + "  - {metric: m, aggregation: mean, higher_is_better: true}\n" * 40
    for number in range(50):
        write(tmp_path, f"t{number}.yaml", f"task: t{number}\ntag: [x, y]\n{body}")
    start = time.perf_counter()
    index = Catalogue([tmp_path], include_defaults=False)
    assert len(index.tasks) == 50
    assert time.perf_counter() - start < 0.5  # 0.02 s alone; the margin is for a busy machine


def test_tags_and_groups_hold_what_the_familys_do() -> None:
    index = Catalogue()
    tagged = {"ai2d", "hallusion_bench_image", "mmbench_en_dev", "mmmu_val", "mmstar", "ocrbench", "realworldqa"}
    tagged |= {f"mathvista_testmini_{form}" for form in ("cot", "format", "solution")}
    tagged |= {"mmmu_pro_standard", "mmmu_pro_vision"}
    assert _members(index, "public_eval_qwen3_5_family") == tagged
    assert _members(index, "coco2017_cap") == {"coco2017_cap_val", "coco2017_cap_test"}


@for_each(("folder", "absent"), [
    ("mmbench", "mmbench_ru_dev"), ("nextqa", "nextqa_oe_test"), ("coco_cap", "coco2014_cap_val"),
])  # fmt: skip
def test_the_card_names_what_the_familys_group_has_beside(folder: str, absent: str) -> None:
    assert absent not in Catalogue().tasks
    card = (Path(lmms_eval.tasks.__file__).parent / folder / "README.md").read_text(encoding="utf-8")
    assert absent in card


def _members(index: Catalogue, name: str) -> set[str]:
    return {task.name for task in select_tasks([name], index, TaskOptions()).tasks}


def test_many_names_that_are_taken_are_one_notice(tmp_path, caplog):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        for number in range(40):
            (tmp_path / folder / f"t{number}.yaml").write_text(f"task: t{number}\n")
    (tmp_path / "second" / "zz.yaml").write_text("task: t1\n")
    with caplog.at_level("DEBUG", logger="lmms_eval"):
        index = Catalogue([tmp_path / "first", tmp_path / "second"], include_defaults=False)
    # t1 stands there twice, and each time it replaces the one in the first folder.
    (notice,) = index.notices
    assert "41 tasks and groups replace those from other places (--verbosity DEBUG lists them)" in notice
    assert "task 't0'" in notice
    assert caplog.text.count("replaces the one in") == 42
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1


def test_a_task_of_a_pack_that_is_not_here_names_the_command() -> None:
    with pytest.raises(UnknownNameError, match="unknown task 'lm-eval:gsm8k': lmms-eval packs add lm-eval"):
        Catalogue().match(["lm-eval:gsm8k"])
