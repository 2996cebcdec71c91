import importlib.util

import pytest

from lmms_eval.api.outcome import Estimate, Withheld
from lmms_eval.metrics import whisper_text
from lmms_eval.tasks.librispeech.utils import aggregate, process_results

needs_spellings = pytest.mark.skipif(
    importlib.util.find_spec("whisper_normalizer") is None, reason="the package whisper-normalizer is not installed"
)


@pytest.fixture
def without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    whisper_text.british_spellings.cache_clear()
    monkeypatch.setattr(whisper_text, "_PACKAGE", "no_package_of_this_name")


def row(truth: str, transcript: str, language: str = "en") -> dict[str, str]:
    return {"gt": truth, "pred": transcript, "task": f"asr_{language}"}


def score(rows: list[dict[str, str]]) -> float | None:
    made = aggregate(rows)
    assert isinstance(made, Estimate)
    return made.value


@needs_spellings
def test_errors_are_counted_over_all_documents() -> None:
    made = aggregate([row("ONE DAY WE WENT", "one day we went."), row("GO HOME", "")])
    assert isinstance(made, Estimate)
    assert made.value == pytest.approx(100 * 2 / 6)
    assert made.stderr is not None


@needs_spellings
def test_an_empty_reference_is_left_out_and_counted() -> None:
    made = aggregate([row(" ", "x"), row("GO", "go")])
    assert isinstance(made, Estimate)
    assert made.value == 0.0
    assert made.notes[0].startswith("left_out: 1 ")
    assert score([row("", "x")]) is None
    assert score([]) is None


@needs_spellings
def test_each_document_is_read_in_its_language() -> None:
    assert score([row("COLOUR", "color", "de"), row("COLOUR", "color")]) == 50.0


@needs_spellings
@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("COLOUR", "color"), ("grey", "gray"), ("moulds", "molds"), ("AXE", "ax"), ("storeys", "stories"),
        ("waggons", "wagons"), ("cosy", "cozy"),
    ],
)  # fmt: skip
def test_spellings_do_not_count_as_errors(british: str, american: str) -> None:
    assert score([row(f"THE {british} ONE", f"the {american} one"), row(american, british)]) == 0.0


def test_without_the_package_english_has_no_score(without_the_package: None) -> None:
    made = aggregate([row("GO HOME", "go home"), row("GEH", "geh", "de")])
    assert made == Withheld(None, whisper_text.INSTALL_HINT)
    assert "lmms_eval[asr]" in made.reason
    assert score([row("GEH HEIM", "geh", "de")]) == 50.0  # what needs no list has a score
    assert score([row(" ", "x")]) is None


def test_joined_recordings_hold_their_transcript_alone() -> None:
    assert process_results({"transcript": "GO"}, [" go "]) == {"wer": {"gt": "GO", "pred": "go", "task": "asr_en"}}
