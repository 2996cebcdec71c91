from __future__ import annotations

import json
import os
import shutil
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loguru import logger

from lmms_eval.errors import JournalError
from lmms_eval.storage.lines import (
    BLOCK_BYTES,
    DocumentPlaces,
    JournalWriter,
    LineReader,
    RecordPlace,
    has_checksums,
    read_lines,
    record_in,
    records_in,
    sealed,
    unsealed,
)
from tests.cases import for_each

OBJECTS = st.dictionaries(st.text(max_size=8), st.text() | st.integers(-(2**53), 2**53) | st.none(), min_size=1)


@pytest.fixture
def logged() -> list[str]:
    messages: list[str] = []
    logger.add(messages.append, format="{message}", level="WARNING")
    return messages


def journal(path: Path, count: int = 3) -> list[int]:
    writer = JournalWriter(path)
    offsets = [writer.append({"n": n, "text": f"é{n}"}) for n in range(count)]
    writer.close()
    return offsets


def numbers(path: Path) -> list[int]:
    return [record["n"] for _, record in read_lines(path)]


@given(OBJECTS)
def test_a_line_is_readable_json_and_gives_its_object_back(content: dict[str, object]) -> None:
    line = sealed(orjson.dumps(content))
    assert line.endswith(b'"}\n') and line.count(b"\n") == 1
    assert list(json.loads(line).items())[:-1] == list(content.items()) or "crc" in content
    assert unsealed(line) == orjson.dumps(content)


@given(OBJECTS, st.data())
def test_no_damaged_line_fits(content: dict[str, object], data: st.DataObject) -> None:
    line = bytearray(sealed(orjson.dumps(content)))
    place = data.draw(st.integers(0, len(line) - 1))
    burst = data.draw(st.binary(min_size=1, max_size=4).filter(any))
    for number, mask in enumerate(burst):
        line[min(place + number, len(line) - 1)] ^= mask
    changed = bytes(line)
    assert unsealed(changed) is None or changed == sealed(orjson.dumps(content))


@given(OBJECTS, st.integers(1, 30))
def test_no_line_that_is_cut_short_fits(content: dict[str, object], cut: int) -> None:
    line = sealed(orjson.dumps(content))
    assert unsealed(line[:-cut]) is None


def test_the_form_is_the_one_that_the_documents_tell() -> None:
    assert sealed(b'{"id":"t/0","text":"x"}') == b'{"id":"t/0","text":"x","crc":"52922af8"}\n'


def test_damaged_lines_are_skipped_and_their_number_is_logged(tmp_path: Path, logged: list[str]) -> None:
    path = tmp_path / "j.jsonl"
    offsets = journal(path, 5)
    data = bytearray(path.read_bytes())
    for number in (1, 3):
        data[offsets[number] + 5] ^= 4
    path.write_bytes(data)
    assert numbers(path) == [0, 2, 4]
    (message,) = logged
    assert str(path) in message
    assert "2 lines are damaged (checksum or content) and skipped; what they held is asked or scored again" in message
    assert [offset for offset, _ in read_lines(path, quietly=True)] == [offsets[0], offsets[2], offsets[4]]
    assert len(logged) == 1
    reader = LineReader(path)
    assert reader.at(offsets[2]) == {"n": 2, "text": "é2"}
    with pytest.raises(JournalError, match=rf"the line at byte {offsets[3]} is no longer what was written"):
        reader.at(offsets[3])
    reader.close()


def test_lines_are_found_in_any_order_whatever_their_length(tmp_path: Path) -> None:
    lengths = [0, 10, BLOCK_BYTES - 40, 3 * BLOCK_BYTES, 7, 20 * BLOCK_BYTES, 1]
    writer = JournalWriter(tmp_path / "j.jsonl")
    records = [{"n": number, "text": "x" * length} for number, length in enumerate(lengths)]
    offsets = [writer.append(record) for record in records]
    reader = LineReader(writer.path)
    for number in [*range(7), *reversed(range(7)), 3, 0, 6, 2]:
        assert reader.at(offsets[number]) == records[number]
    offsets.append(writer.append({"n": 7}))  # beyond what has been read
    assert reader.at(offsets[7]) == {"n": 7}
    os.truncate(writer.path, offsets[7] + 4)
    with closing(LineReader(writer.path)) as again, pytest.raises(JournalError, match="is no longer what was written"):
        again.at(offsets[7])
    writer.close()
    reader.close()


def test_lines_beside_each_other_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j.jsonl"
    offsets = journal(path, 500)
    reads: list[int] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda *of: reads.append(of[2]) or pread(*of))
    reader = LineReader(path)
    assert [reader.at(offset)["n"] for offset in offsets] == list(range(500))
    assert len(reads) <= 1 + 2 * path.stat().st_size // BLOCK_BYTES
    reads.clear()
    assert [reader.at(offsets[0])["n"] for _ in range(3)] == [0] * 3  # the first line of a block
    assert reads == [0]
    reader.close()


def test_a_torn_first_line_is_no_other_form(tmp_path: Path, logged: list[str]) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(sealed(b'{"n":0}')[:-9])
    writer = JournalWriter(path)
    writer.append({"n": 1})
    writer.close()
    assert numbers(path) == [1]
    assert "1 line is damaged" in logged[0]


def test_a_journal_of_another_form_is_set_aside_and_begun_anew(tmp_path: Path, logged: list[str]) -> None:
    path = tmp_path / "j.jsonl"
    for number in (1, 2):
        path.write_bytes(b'{"n":7}\n{"n":8}\n{"n"')
        assert numbers(path) == []
        writer = JournalWriter(path)
        writer.append({"n": 1})
        writer.close()
        assert numbers(path) == [1]
        assert (tmp_path / f"j.jsonl.other-form-{number}").read_bytes().startswith(b'{"n":7}\n')
    assert "is a journal of another form (no checksums): nothing is taken from it" in logged[0]
    assert "moved to j.jsonl.other-form-1, begun anew" in logged[1]


def test_lines_of_another_process_are_checked(logged: list[str]) -> None:
    good = sealed(b'{"n":1}')
    assert records_in(good + good.replace(b"1", b"2", 1) + good, "records of process 1") == [{"n": 1}] * 2
    assert logged[0].startswith("records of process 1: 1 line is damaged")


def sealed_bytes(content: bytes) -> bytes:
    """A line with a right checksum and any content, whose last byte is replaced by the checksum field."""
    return sealed(content.replace(b"\n", b" ") + b"}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.text() | st.sampled_from(["__tuple__", "__set__", "__float__", "__bytes__", "__pairs__"]), inner, max_size=2
    ),
    max_leaves=8,
)  # fmt: skip
CONTENTS = (
    st.binary()
    | st.dictionaries(st.text() | st.sampled_from(["__set__", "__pairs__", "__float__"]), JSON, min_size=1).map(
        lambda value: json.dumps(value).encode()[:-1]
    )
    | st.sampled_from([b'{"a":' * 600, b'{"a":' + b"[" * 5000, b'{"__float__":"' + b"9" * 5000 + b'"', b"[1", b'"x'])
)


@given(CONTENTS)
def test_whatever_a_fitting_line_holds_is_a_record_or_damaged(content: bytes) -> None:
    record = record_in(sealed_bytes(content))
    assert record is None or (isinstance(record, dict) and all(isinstance(key, str) for key in record))


@given(st.lists(CONTENTS, min_size=1, max_size=4))
def test_fitting_lines_that_hold_no_record_are_counted(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "j.jsonl"
    lines = [sealed(b'{"n":0}'), *map(sealed_bytes, contents), sealed(b'{"n":1}')]
    path.write_bytes(b"".join(lines))
    messages: list[str] = []
    sink = logger.add(messages.append, format="{message}", level="WARNING")
    found = list(read_lines(path))
    logger.remove(sink)
    assert (found[0][1], found[-1][1]) == ({"n": 0}, {"n": 1})
    damaged = len(lines) - len(found)
    assert [f"{damaged} line" in message for message in messages] == [True] * bool(damaged)
    with closing(LineReader(path)) as reader:
        assert [reader.at(offset) for offset, _ in found] == [record for _, record in found]
        offset = len(lines[0])
        if all(start != offset for start, _ in found):
            with pytest.raises(JournalError, match="is no longer what was written"):
                reader.at(offset)


def test_a_journal_is_told_from_lines_that_a_person_wrote() -> None:
    assert has_checksums(b'{"a":1}\n' + sealed(b'{"n":1}').replace(b"1", b"2"))
    assert not has_checksums(b'{"a":1}\n{"crc":"12345678"}\n')


@for_each("how", ["deleted", "moved"])
def test_a_folder_that_goes_away_is_noticed(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmms_eval.storage.lines.LOOK_EVERY_S", 0.0)
    path = tmp_path / "run" / "j.jsonl"
    writer = JournalWriter(path)
    writer.append({"n": 1})
    if how == "deleted":
        shutil.rmtree(path.parent)
        with pytest.raises(JournalError, match=r"j\.jsonl was deleted or moved while it was written"):
            writer.append({"n": 2})
    else:
        path.parent.rename(tmp_path / "elsewhere")
        writer.append({"n": 2})  # still in the file, wherever that is
    with pytest.raises(JournalError, match=r"j\.jsonl was deleted or moved while it was written"):
        writer.sync()
    writer.close()


def test_what_cannot_be_read_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot read the journal"):
        list(read_lines(tmp_path))
    with pytest.raises(JournalError, match="cannot read the journal"):
        LineReader(tmp_path / "none")
    assert list(read_lines(tmp_path / "none")) == []


def test_a_line_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []
    writer = JournalWriter(tmp_path / "j.jsonl")
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: writes.append(bytes(data)) or write(file, data))
    writer.append({"n": 1})
    assert len(writes) == 1
    writer.close()


@given(st.lists(st.tuples(st.integers(0, 40), st.none() | st.tuples(st.integers(0, 3), st.integers(0, 2**40)))))
def test_places_of_documents_are_a_dict_in_ascending_order(steps: list[tuple[int, tuple[int, int] | None]]) -> None:
    places, expected = DocumentPlaces(), dict[int, RecordPlace]()
    for doc_id, place in steps:
        if place is None:
            assert places.pop(doc_id, None) == expected.pop(doc_id, None)
        else:
            places[doc_id] = expected[doc_id] = RecordPlace(*place)
    assert list(places.items()) == sorted(expected.items())
    assert len(places) == len(expected)
    assert all(
        (doc_id in places, places.get(doc_id)) == (doc_id in expected, expected.get(doc_id)) for doc_id in range(-2, 42)
    )
    with pytest.raises(KeyError):
        del places[41]
    with pytest.raises(KeyError):
        places[-1] = RecordPlace(0, 0)
