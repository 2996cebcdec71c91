import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.librispeech.utils import aggregate, process_results


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def row(truth: str, transcript: str, language: str = "en") -> dict[str, str]:
    return {"gt": truth, "pred": transcript, "task": f"asr_{language}"}


def test_errors_are_counted_over_all_documents() -> None:
    made = aggregate([row("ONE DAY WE WENT", "one day we went."), row("GO HOME", "")])
    assert made.value == pytest.approx(100 * 2 / 6)
    assert made.stderr is not None


def test_an_empty_reference_is_left_out_and_counted() -> None:
    made = aggregate([row(" ", "x"), row("GO", "go")])
    assert made.value == 0.0
    assert made.notes[0].startswith("left_out: 1 ")
    assert aggregate([row("", "x")]).value is None
    assert aggregate([]).value is None


def test_each_document_is_read_in_its_language() -> None:
    made = aggregate([row("COLOUR", "color", "de"), row("COLOUR", "color")])
    assert made.value == 50.0


def test_whispers_own_list_is_taken_where_it_is_found(tmp_path: Path, no_cache: Path) -> None:
    rows = [row("QUUX COLOUR", "kwux color")]
    absent = aggregate(rows)
    assert absent.value == 50.0
    assert "packaged list" in absent.notes[0]
    found = json.dumps({"quux": "kwux", "colour": "color"})
    (tmp_path / "normalizer.json").write_text(found, "utf-8")
    made = aggregate(rows, SimpleNamespace(data_root=str(tmp_path)))
    assert (made.value, made.notes) == (0.0, ())
    cached = no_cache / "models--openai--whisper-tiny" / "snapshots" / "a"
    cached.mkdir(parents=True)
    (cached / "normalizer.json").write_text(found, "utf-8")
    assert aggregate(rows).value == 0.0


@pytest.mark.parametrize("content", ["[1]", '{"a": 1}', "not json"])
def test_a_damaged_list_is_an_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "normalizer.json").write_text(content, "utf-8")
    with pytest.raises(DataError, match=r"normalizer\.json"):
        aggregate([row("A", "a")], SimpleNamespace(data_root=str(tmp_path)))


def test_joined_recordings_hold_their_transcript_alone() -> None:
    assert process_results({"transcript": "GO"}, [" go "]) == {"wer": {"gt": "GO", "pred": "go", "task": "asr_en"}}
