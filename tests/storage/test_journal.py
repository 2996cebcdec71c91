from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval.errors import JournalError
from lmms_eval.storage.atomic import write_atomically
from lmms_eval.storage.lines import JournalSet, JournalWriter, LineReader, read_lines, sealed
from tests.cases import for_each


def test_records_are_read_back_at_their_offsets(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "j.jsonl"
    writer = JournalWriter(path)
    offsets = [writer.append({"n": n, "text": "x" * n}) for n in range(5)]
    reader = LineReader(path)
    assert [reader.at(offset)["n"] for offset in reversed(offsets)] == [4, 3, 2, 1, 0]
    assert [(offset, record["n"]) for offset, record in read_lines(path)] == list(zip(offsets, range(5), strict=True))
    writer.close()
    reader.close()


@for_each("torn", [b'{"n": 1', b"\x00\x00", b'{"n": 1}'])
def test_a_torn_last_line_is_ignored_and_closed(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(sealed(b'{"n":0}') + torn)
    assert [record["n"] for _, record in read_lines(path)] == [0]
    writer = JournalWriter(path)
    offset = writer.append({"n": 2})
    writer.close()
    assert [record["n"] for _, record in read_lines(path)] == [0, 2]
    assert path.read_bytes()[offset:] == sealed(b'{"n":2}')


def test_every_prefix_of_a_journal_gives_its_whole_records(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    writer = JournalWriter(path)
    for n in range(3):
        writer.append({"n": n})
    writer.close()
    data = path.read_bytes()
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        assert [record["n"] for _, record in read_lines(path)] == list(range(data[:cut].count(b"\n")))


def test_full_disk_is_an_error_that_names_the_file() -> None:
    with pytest.raises(JournalError, match=r"/dev/full.*make room and start the same command again"):
        JournalWriter(Path("/dev/full")).append({"n": 1})


def test_a_short_write_is_an_error_and_what_was_before_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from lmms_eval.storage.lines import JournalWriter\n"
        "from lmms_eval.errors import JournalError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "writer = JournalWriter(Path(sys.argv[1]))\n"
        "writer.append({'n': 'x' * 50})\n"
        "try:\n    writer.append({'n': 'y' * 80})\nexcept JournalError as error:\n    print(error); sys.exit(7)\n"
    )
    assert resource.RLIMIT_FSIZE is not None
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    assert "took only" in done.stdout
    assert [record["n"] for _, record in read_lines(path)] == ["x" * 50]


def test_a_parent_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(JournalError, match="cannot open the journal"):
        JournalWriter(tmp_path / "file" / "j.jsonl")


def test_atomic_writes_replace_or_leave(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]
    with pytest.raises(JournalError, match="cannot write"):
        write_atomically(path / "below", b"x")
    assert path.read_bytes() == b"two"


def test_missing_journal_is_empty(tmp_path: Path) -> None:
    assert list(read_lines(tmp_path / "none")) == []


def test_after_a_short_write_the_next_record_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    """Another thread may still write when the disk has room again; the next start must find its record."""
    path = tmp_path / "j.jsonl"
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from lmms_eval.storage.lines import JournalWriter\nfrom lmms_eval.storage.lines import LineReader\n"
        "from lmms_eval.errors import JournalError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30, hard))\n"
        "writer = JournalWriter(Path(sys.argv[1]))\n"
        "try:\n    writer.append({'n': 'x' * 50})\nexcept JournalError:\n    pass\nelse:\n    sys.exit(3)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "offset = writer.append({'n': 'kept'})\n"
        "sys.exit(0 if LineReader(Path(sys.argv[1])).at(offset) == {'n': 'kept'} else 4)\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script, str(path)], check=False)
    assert done.returncode == 0
    assert [record["n"] for _, record in read_lines(path)] == ["kept"]


def test_a_disk_that_cannot_be_forced_is_an_error_of_ours() -> None:
    writer = JournalWriter(Path("/dev/full"))
    with pytest.raises(JournalError, match="cannot force /dev/full to the disk"):
        writer.sync()
    writer.close()


def test_several_journals_are_read_as_one(tmp_path: Path) -> None:
    writers = [JournalWriter(tmp_path / f"{name}.jsonl") for name in "ab"]
    for number, writer in enumerate(writers):
        for line in range(3):
            writer.append({"from": number, "line": line})
    journals = JournalSet()
    places = {(record["from"], record["line"]): place for writer in writers for place, record in
              journals.load(writer.path)}  # fmt: skip
    assert len(places) == len(set(places.values())) == 6
    for (number, line), place in reversed(places.items()):
        assert journals.at(place) == {"from": number, "line": line}
    own = journals.add(writers[0].path)
    assert own == 2 and next(journals.load(tmp_path / "a.jsonl"))[0].file == 3
    journals.close()
    for writer in writers:
        writer.close()
