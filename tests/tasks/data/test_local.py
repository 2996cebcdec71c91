"""Local files: rows equal those of ``datasets``; what is missing or broken is named."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_eval.errors import DataError, TaskError
from lmms_eval.tasks.data import text_files
from lmms_eval.tasks.data.splits import DataRequest, DataSet, open_data
from lmms_eval.utils.files import StatedPath
from tests.cases import for_each


def open_(path: str, folder: Path, split: str = "test", name: str | None = None, **more: Any) -> DataSet:
    root = more.pop("data_root", None)
    return open_data(DataRequest(StatedPath(path, folder), name, more, str(folder / "t.yaml"), root), split)


def rows(builder: str, folder: Path, file: str, **more: Any) -> list[dict[str, Any]]:
    data = open_(builder, folder, data_files={"test": StatedPath(file, folder)}, **more)
    return [dict(row) for row in data.documents("test")]


def by_datasets(builder: str, path: Path, cache: Path, **more: Any) -> list[dict[str, Any]]:
    import datasets

    found = datasets.load_dataset(builder, data_files={"test": str(path)}, cache_dir=str(cache), **more)
    return list(found["test"])


JSON_LINES = [
    {"id": 1, "when": "2024-01-02", "at": "2024-01-02T03:04:05", "many": [1, 2], "in": {"a": 1}, "none": None},
    {"id": 2.5, "when": "2024-01-03", "extra": "x", "many": [], "in": {"a": 2}},
]
MIXED = [
    {"id": 1, "v": "x", "s": {"a": 1}},
    {"id": "two", "v": [1, {"k": None}], "s": {"b": "q"}},
    {"id": None, "v": None},
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lines.jsonl", "\n".join(map(json.dumps, JSON_LINES)) + "\n"),
        ("no_newline.jsonl", "\n".join(map(json.dumps, JSON_LINES))),
        ("list.json", json.dumps(JSON_LINES, indent=1)),
        ("mixed.jsonl", "\n".join(map(json.dumps, MIXED)) + "\n"),
        ("texts.json", json.dumps(["a", "b"])),
        ("bom.jsonl", "\ufeff" + "\n".join(map(json.dumps, JSON_LINES))),
    ],
)
def test_json_as_datasets_reads_it(tmp_path: Path, name: str, text: str) -> None:
    import datasets

    if name == "mixed.jsonl" and not hasattr(datasets, "Json"):
        pytest.skip("this release of datasets refuses columns of mixed types")
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert rows("json", tmp_path, name) == by_datasets("json", path, tmp_path / "cache")


def test_json_field_and_gzip(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(json.dumps({"version": 1, "data": [{"a": 1}, {"a": 2}]}))
    assert rows("json", tmp_path, "f.json", field="data") == [{"a": 1}, {"a": 2}]
    (tmp_path / "z.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n'))
    assert rows("json", tmp_path, "z.jsonl.gz") == [{"a": 1}]


@for_each("builder", ["json", "csv"])
def test_a_gzip_file_that_grows_beyond_measure_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builder: str
) -> None:
    monkeypatch.setattr(text_files, "MAX_UNPACKED_BYTES", 1000)
    (tmp_path / f"a.{builder}.gz").write_bytes(gzip.compress(b"[" + b" " * 5_000_000 + b"]"))
    with pytest.raises(DataError, match=r"a\.\w+\.gz: \d+ bytes grow to more than \d+ when unpacked"):
        rows(builder, tmp_path, f"a.{builder}.gz")


def test_csv_as_datasets_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("id,name,ok,when,n\n1,Bob,True,2024-01-02,\n2,,False,2024-01-03,3\n")
    assert rows("csv", tmp_path, "c.csv") == by_datasets("csv", path, tmp_path / "cache")
    (tmp_path / "c.tsv").write_text("id\ttext\n1\ta,b\n")
    assert rows("tsv", tmp_path, "c.tsv") == [{"id": 1, "text": "a,b"}]
    assert rows("csv", tmp_path, "c.tsv", sep="\t") == [{"id": 1, "text": "a,b"}]


def test_text_and_arrow(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("one\ntwo\n")
    assert rows("text", tmp_path, "t.txt") == [{"text": "one"}, {"text": "two"}]
    table = pa.table({"a": [1, 2]})
    with pa.OSFile(str(tmp_path / "s.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert rows("arrow", tmp_path, "s.arrow") == [{"a": 1}, {"a": 2}]


def test_several_parquet_files_and_globs(tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(
            pa.table({"n": list(range(number * 4, number * 4 + 4))}), tmp_path / f"p{number}.parquet", row_group_size=2
        )
    assert [row["n"] for row in rows("parquet", tmp_path, "p*.parquet")] == list(range(12))


@for_each(
    ("builder", "file", "content", "message"),
    [
        ("parquet", "x.parquet", b"PAR1 not really", r"x\.parquet: not a readable parquet file \(15 bytes\).*fetch"),
        ("json", "x.jsonl", b'{"a": 1}\n{"a": \n', r"x\.jsonl, line 2: not valid JSON"),
        ("json", "x.json", b'[{"a": 1}', r"x\.json: not valid JSON"),
        ("json", "x.jsonl", b'{"a": 1}\n3\n', r"x\.jsonl, line 2: a row must be an object"),
        ("csv", "x.csv", b'a,b\n"1,2\n', r"x\.csv: cannot be read as CSV.*separator"),
        ("arrow", "x.arrow", b"nonsense", r"x\.arrow: not a readable Arrow file"),
        ("text", "x.txt", b"\xff\xfe\x00", r"x\.txt: is not UTF-8"),
    ],
)  # fmt: skip
def test_broken_files_are_named(tmp_path: Path, builder: str, file: str, content: bytes, message: str) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError, match=message):
        rows(builder, tmp_path, file)


def test_truncated_parquet_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    pq.write_table(pa.table({"a": ["x" * 1000] * 100}), path, compression="none", use_dictionary=False)
    data = path.read_bytes()
    path.write_bytes(data[:4] + bytes(400) + data[404:])
    with pytest.raises(DataError, match=r"cut\.parquet: not a readable parquet file"):
        rows("parquet", tmp_path, "cut.parquet")


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text("{}")
    with pytest.raises(
        DataError, match=r"t\.yaml: data file .*dat\.jsonl \(split 'test'\) does not exist.*holds: data\.jsonl"
    ):
        rows("json", tmp_path, "dat.jsonl")
    with pytest.raises(DataError, match=r"needs dataset_kwargs\.data_files"):
        open_("json", tmp_path)


def test_a_missing_split_names_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"a": 1}')
    data = open_("json", tmp_path, data_files=StatedPath("d.jsonl", tmp_path))
    assert data.splits == ("train",)
    with pytest.raises(DataError, match=r"there is no split 'test' in the data; there is: train"):
        data.documents("test")


def test_files_of_differing_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "p0.parquet")
    pq.write_table(pa.table({"n": [{"x": 1}]}), tmp_path / "p1.parquet")
    with pytest.raises(DataError, match="do not have the same columns"):
        rows("parquet", tmp_path, "p*.parquet")


def test_pickle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"pickle.*use parquet"):
        open_("pandas", tmp_path, data_files="x.pkl")


def test_videos_of_youtube_are_not_downloaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("lmms_eval").propagate = True
    write(tmp_path / "videos", "test-00000-of-00001.parquet", 5)
    data = open_("org/videos", tmp_path, From_YouTube=True, cache_dir="videos", data_root=str(tmp_path))
    assert [dict(row) for row in data.documents("test")] == [{"v": 5}]
    assert "they must be where the task's code looks for them" in caplog.text


def write(folder: Path, name: str, value: int) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"v": [value]}), path)


@for_each(
    ("files", "name", "wanted"),
    [
        (["cfg/test-00000-of-00001.parquet", "other/test-00000-of-00001.parquet"], "cfg", 0),
        (["other/test-00000-of-00001.parquet", "cfg/test/0000.parquet"], "cfg", 1),
        (["data/test-00000-of-00002.parquet"], None, 0),
        (["test.parquet", "train.parquet"], None, 0),
        (["testing-x.parquet"], None, 0),
        (["data/cfg/test-00000-of-00001.parquet"], "cfg", 0),
        (["answers.parquet", "cfg/test-00000-of-00001.parquet"], None, 1),
    ],
)
def test_folders_in_the_layout_of_the_hub(tmp_path: Path, files: list[str], name: str | None, wanted: int) -> None:
    for number, file in enumerate(files):
        write(tmp_path / "repo", file, number)
    data = open_("repo", tmp_path, name=name)
    assert data.documents("test")[0]["v"] == wanted


def test_the_card_of_a_repository_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "repo", "odd/name.parquet", 5)
    write(tmp_path / "repo", "cfg/test-00000-of-00001.parquet", 6)
    (tmp_path / "repo" / "README.md").write_text(
        "---\nconfigs:\n- config_name: cfg\n  data_files:\n  - split: held_out\n    path: odd/*.parquet\n---\n# Card\n"
    )
    data = open_("repo", tmp_path, name="cfg")
    assert data.splits == ("held_out",)
    assert data.documents("held_out")[0]["v"] == 5


def test_data_root_holds_a_local_copy(tmp_path: Path) -> None:
    write(tmp_path / "copies", "Bench/core/test-00000-of-00001.parquet", 1)
    write(tmp_path / "flat", "rows.parquet", 2)
    named = open_("org/Bench", tmp_path, name="core", data_root=str(tmp_path / "copies"))
    assert named.documents("test")[0]["v"] == 1
    flat = open_("org/Bench", tmp_path, name="core", data_root=str(tmp_path / "flat"))
    assert flat.documents("test")[0]["v"] == 2  # files that name no split are the evaluated one
    with pytest.raises(DataError, match=r"--data_root .*nowhere: there is no such folder"):
        open_("org/Bench", tmp_path, data_root=str(tmp_path / "nowhere"))
    (tmp_path / "empty" / "docs").mkdir(parents=True)
    with pytest.raises(DataError, match=r"no data files.*/empty/Bench do not exist.*itself, which holds: docs/"):
        open_("org/Bench", tmp_path, name="core", data_root=str(tmp_path / "empty"))


def test_a_copy_under_another_name_is_known_by_the_folder_of_the_configuration(tmp_path: Path) -> None:
    write(tmp_path, "core/test-00000-of-00001.parquet", 3)
    found = open_("org/Bench", tmp_path, name="core", data_root=str(tmp_path))
    assert found.documents("test")[0]["v"] == 3
    assert found.from_root == tmp_path  # so that the task checks its columns
    with pytest.raises(DataError, match="no data files found"):
        open_("org/Bench", tmp_path, name="open", data_root=str(tmp_path))


@for_each("place", ["Other", "Other/data", "data", "Other/core", "deep/er/Other"])
def test_the_folders_of_other_benchmarks_below_data_root_are_not_looked_through(tmp_path: Path, place: str) -> None:
    write(tmp_path, f"{place}/test-00000-of-00001.parquet", 1)
    for name in (None, "core"):
        with pytest.raises(DataError, match="no data files found"):
            open_("org/Bench", tmp_path, name=name, data_root=str(tmp_path))


def test_a_data_root_that_is_the_copy_itself_is_looked_through(tmp_path: Path) -> None:
    write(tmp_path / "Bench", "core/test-00000-of-00001.parquet", 1)
    snapshot = tmp_path / "datasets--org--Bench" / "snapshots" / "abc"
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to(tmp_path / "Bench")
    for root in (tmp_path / "Bench", snapshot):
        data = open_("org/Bench", tmp_path, name="core", data_root=str(root))
        assert data.documents("test")[0]["v"] == 1
        assert data.from_root is None
    (tmp_path / "Bench").rename(tmp_path / "mine")
    data = open_("org/Bench", tmp_path, name="core", data_root=str(tmp_path / "mine"))
    assert data.documents("test")[0]["v"] == 1
    assert data.from_root == tmp_path / "mine"  # the folder of the configuration: its columns must fit


def test_files_of_several_data_sets_beside_each_other_are_refused_by_the_tasks_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, "one.parquet", 1)
    request = DataRequest("org/Bench", None, {}, "t.yaml", str(tmp_path), task="bench")
    data = open_data(request, "test")
    assert data.from_root == tmp_path
    (said,) = caplog.messages
    assert f"task 'bench' reads {tmp_path / 'one.parquet'}; --data_root" in said
    pq.write_table(pa.table({"v": [1], "w": [2]}), tmp_path / "two.parquet")
    with pytest.raises(DataError, match=r"task 'bench': .* holds several data sets .*: w\); give each a folder"):
        open_data(request, "test")


def test_data_files_fall_back_to_data_root(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "d.jsonl").write_text('{"a": 7}')
    data = open_(
        "json", tmp_path, data_files={"test": StatedPath("d.jsonl", tmp_path)}, data_root=str(tmp_path / "elsewhere")
    )
    assert data.documents("test")[0]["a"] == 7


def test_data_files_are_also_looked_for_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here, beside = tmp_path / "here", tmp_path / "tasks"
    for folder in (here / "data", beside):
        folder.mkdir(parents=True)
    (here / "data" / "d.jsonl").write_text('{"a": 8}')
    monkeypatch.chdir(here)
    stated = {"test": StatedPath("data/d.jsonl", beside)}
    assert open_("json", beside, data_files=stated).documents("test")[0]["a"] == 8
    assert open_("json", beside, data_files=StatedPath("data/*.jsonl", beside)).documents("train")[0]["a"] == 8
    assert not caplog.messages
    (beside / "data").mkdir()
    (beside / "data" / "d.jsonl").write_text('{"a": 9}')
    assert open_("json", beside, data_files=stated).documents("test")[0]["a"] == 9
    (said,) = caplog.messages
    assert said == (
        f"{beside / 't.yaml'}: data file data/d.jsonl (split 'test') is taken from {beside / 'data' / 'd.jsonl'}; "
        f"there is also {here / 'data' / 'd.jsonl'}"
    )
    monkeypatch.chdir(beside)
    caplog.clear()
    assert open_("json", beside, data_files=stated).documents("test")[0]["a"] == 9
    assert not caplog.messages  # the same file, seen from both places


def test_a_data_file_that_is_nowhere_names_all_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(DataError) as caught:
        open_("json", tmp_path, data_files={"test": StatedPath("d.jsonl", tmp_path)}, data_root=str(tmp_path / "root"))
    places = f"{tmp_path / 'd.jsonl'} (split 'test') does not exist, nor {tmp_path / 'root' / 'd.jsonl'}, nor "
    assert f"data file {places}{tmp_path / 'here' / 'd.jsonl'}" in str(caught.value)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"dataset_path './none': there is no folder"):
        open_("./none", tmp_path)


def test_hub_data_without_network_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def refuse(path: str, name: str | None, **kwargs: Any) -> None:
        assert (path, name, kwargs) == ("org/data", "cfg", {})  # token: true is the stored token, where there is one
        raise ConnectionError("no network")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(DataError, match=r"data set 'org/data' \(configuration 'cfg'\).*no network.*--data_root"):
        open_("org/data", tmp_path, name="cfg", token=True, trust_remote_code=True, cache_dir=None)


def test_load_from_disk(tmp_path: Path) -> None:
    import datasets

    datasets.DatasetDict({"test": datasets.Dataset.from_list([{"a": 1}])}).save_to_disk(tmp_path / "saved")
    assert dict(open_("saved", tmp_path, load_from_disk=True).documents("test")[0]) == {"a": 1}
    assert dict(open_("saved", tmp_path).documents("test")[0]) == {"a": 1}
    with pytest.raises(DataError, match="load_from_disk: true"):
        open_("not_saved", tmp_path, load_from_disk=True)
    (tmp_path / "junk").mkdir()
    with pytest.raises(DataError, match="not a folder written by save_to_disk"):
        open_("junk", tmp_path, load_from_disk=True)


def test_identity_follows_the_files(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"a": 1}\n')
    stated = {"test": StatedPath("d.jsonl", tmp_path)}
    first = open_("json", tmp_path, data_files=stated).identity("test")
    assert first == open_("json", tmp_path, data_files=stated).identity("test")
    path.write_text('{"a": 1}\n{"a": 2}\n')
    assert first != open_("json", tmp_path, data_files=stated).identity("test")


def test_a_real_dataset_for_plugins(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, JSON_LINES)))
    data = open_("json", tmp_path, data_files={"test": StatedPath("m.jsonl", tmp_path)})
    found = data.dataset_dict()
    assert list(found["test"]) == [dict(row) for row in data.documents("test")]
