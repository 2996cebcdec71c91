from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from lmms_eval.api.judging import Verdict
from lmms_eval.api.records import JudgementLine, JudgeVerdict, Medium, Message, ResponseLine, ScoreLine
from lmms_eval.api.response import SentMedia, SentMessage
from lmms_eval.engine.records import response_from_record, response_record
from lmms_eval.results.schema import ResultsDocument, SampleLine
from lmms_eval.storage import codec
from lmms_eval.storage.lines import record_in, sealed
from lmms_eval.storage.run_folder import RunFile
from tests.cases import for_each

ARCHIVE = Path(__file__).parents[1] / "results" / "runs_of_1_0_0.tar.xz"
JOURNALS: dict[str, type[Struct]] = {"responses": ResponseLine, "scores": ScoreLine, "judgements": JudgementLine}


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """Return the files that version 1.0.0 wrote, by path."""
    with tarfile.open(ARCHIVE) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive if one.isfile()}


def lines(files: dict[str, bytes], name: str) -> Iterator[tuple[bytes, dict[str, Any]]]:
    for path, content in files.items():
        if path.rpartition("/")[2].startswith(f"{name}-"):
            for line in content.splitlines(keepends=True):
                if (record := record_in(line)) is not None:
                    yield line, record


def known_part(record: Struct) -> dict[str, Any]:
    """Return the fields of a record that are set; values that a task made (tuples, sets) stay as they are."""
    found = {name: value for name, value in msgspec.structs.asdict(record).items() if value is not msgspec.UNSET}
    for name, value in found.items():
        if isinstance(value, list):
            found[name] = [known_part(item) if isinstance(item, Struct) else item for item in value]
        elif isinstance(value, Struct):
            found[name] = known_part(value)
    return found


@pytest.mark.parametrize("name", JOURNALS)
def test_lines_of_1_0_0_are_written_again_byte_for_byte(files: dict[str, bytes], name: str) -> None:
    count = 0
    for line, record in lines(files, name):
        assert sealed(codec.dumps(known_part(msgspec.convert(record, JOURNALS[name])))) == line
        count += 1
    assert count > 1


def test_responses_of_1_0_0_survive_as_responses(files: dict[str, bytes]) -> None:
    for line, record in lines(files, "responses"):
        again = response_record(response_from_record(record), record.get("prompt", ""))
        assert sealed(codec.dumps(again)) == line


def test_documents_samples_and_run_files_of_1_0_0_are_decoded(files: dict[str, bytes]) -> None:
    counts = {"results": 0, "samples": 0, "run": 0}
    for path, content in files.items():
        if path.endswith("_results.json"):
            found = msgspec.json.decode(content, type=ResultsDocument)
            assert found.state != "running" and found.n_samples.keys() == found.versions.keys()
            counts["results"] += 1
        elif "_samples_" in path:
            for line in content.splitlines():
                assert msgspec.json.decode(line, type=SampleLine).status in ("scored", "unscored")
                counts["samples"] += 1
        elif path.endswith("run.json"):
            state = msgspec.convert(json.loads(content[: content.rindex(b",\n")] + b"}"), RunFile).state
            assert state in ("complete", "running", "interrupted", "stopped early")
            counts["run"] += 1
    assert min(counts.values()) > 3


def test_what_a_later_version_adds_is_passed_over() -> None:
    record = {
        "id": "t/0/0/0/0", "text": "x", "later": 1,
        "media": [{"type": "hologram", "path": "/a", "later": 2}],
        "messages": [{"role": "user", "content": [{"text": "q", "later": 3}], "later": 4}],
    }  # fmt: skip
    response = response_from_record(record)
    assert (response.text, response.attempts, response.is_cached) == ("x", 1, False)
    assert (response.media[0].type, response.messages[0].content[0].text) == ("hologram", "q")
    assert response_from_record({"id": "t/0/0/0/0", "error": {"kind": "later", "message": "m", "attempts": 2}}).error


@for_each("record", [{"text": "x"}, {"id": 1}, {"id": "t", "media": 1}, {"id": "t", "usage": ["x"]}])
def test_a_record_of_another_form_is_an_error(record: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        response_from_record(record)


@for_each(
    ("kind", "full", "rebuilt"),
    [
        (Medium, {
            "type": "video", "path": "/a", "url": "u", "name": "n", "sha256": "0", "bytes": 1, "width": 2, "height": 3,
            "seconds": 0.5, "frames": [0, 2], "times": [0.0, 1.0], "fps": 1.0, "processed": [4, 5], "tokens": 6,
            "stored": ["media/0.png"], "not_stored": "size", "origin": "task",
        }, lambda record: SentMedia.from_dict(record).to_dict()),
        (Message, {
            "role": "tool", "content": [{"text": "t"}], "round": 1, "after": 0, "continues": True, "call": "c",
        }, lambda record: SentMessage.from_dict(record).to_dict()),
        (JudgeVerdict, {
            "name": "n", "text": "t", "accepted": True, "model": "m", "prompt": "p", "error": "e",
            "replies": ["s", "t"], "usage": [1, None, 3], "details": {"frames": 2},
        }, lambda record: Verdict.from_record(record).as_record()),
    ],
)  # fmt: skip
def test_every_field_of_a_record_has_its_place_in_the_value(kind: type[Struct], full: Any, rebuilt: Any) -> None:
    assert list(full) == list(kind.__struct_encode_fields__)
    assert json.dumps(rebuilt(full)) == json.dumps(full)
