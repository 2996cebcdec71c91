import importlib.metadata
import importlib.util
from collections.abc import Iterator

import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.metrics import speech
from lmms_eval.tasks._task_utils.scoring_data import identity_of
from lmms_eval.tasks.librispeech.utils import aggregate, process_results

needs_spellings = pytest.mark.skipif(
    importlib.util.find_spec("whisper_normalizer") is None, reason="the package whisper-normalizer is not installed"
)


@pytest.fixture
def without_the_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(speech, "_PACKAGE", "no_package_of_this_name")
    speech.british_spellings.cache_clear()
    yield
    speech.british_spellings.cache_clear()


def row(truth: str, transcript: str, language: str = "en") -> dict[str, str]:
    return {"gt": truth, "pred": transcript, "task": f"asr_{language}"}


def score(rows: list[dict[str, str]]) -> float | None:
    made = aggregate(rows)
    return made.value


@needs_spellings
def test_errors_are_counted_over_all_documents() -> None:
    made = aggregate([row("ONE DAY WE WENT", "one day we went."), row("GO HOME", "")])
    assert made.value == pytest.approx(100 * 2 / 6)
    assert made.stderr is not None


@needs_spellings
def test_an_empty_reference_is_left_out_and_counted() -> None:
    made = aggregate([row(" ", "x"), row("GO", "go")])
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
    german = {"gt": "GEH HEIM", "source": "s", "task": "asr_de"}
    for english in ({**german, "task": "asr_en"}, {"transcript": "GO"}):
        with pytest.raises(NotEvaluated, match=r"lmms_eval\[asr\]"):
            process_results(english, ["go"])
    with pytest.raises(NotEvaluated):
        aggregate([row("GO HOME", "go home"), row("GEH", "geh", "de")])
    assert score([process_results(german, ["geh"])["wer"]]) == 50.0  # what needs no list has a score


def test_scores_are_made_again_when_the_package_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9")
    assert identity_of(process_results, {}) == "whisper_normalizer 9.9"
    monkeypatch.undo()
    monkeypatch.setattr(speech, "_PACKAGE", "no_package_of_this_name")
    assert identity_of(process_results, {}) == ""


@needs_spellings
def test_joined_recordings_hold_their_transcript_alone() -> None:
    assert process_results({"transcript": "GO"}, [" go "]) == {"wer": {"gt": "GO", "pred": "go", "task": "asr_en"}}
