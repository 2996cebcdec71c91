import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from transformers.models.whisper.english_normalizer import BasicTextNormalizer, EnglishTextNormalizer

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.metrics import speech
from lmms_eval.metrics.speech import basic_normaliser, british_spellings, english_normaliser, remove_sp
from tests.regular_expressions import ends_within

needs_spellings = pytest.mark.skipif(
    importlib.util.find_spec("whisper_normalizer") is None, reason="the package whisper-normalizer is not installed"
)
MARKED = st.lists(st.sampled_from(["<", ">", "[", "]", "(", ")", "()", "one ", "'s ", "a ", "$5 ", "."]), max_size=14)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return where a stand-in for the package keeps its list."""
    (tmp_path / "stand_in" / "normalizers").mkdir(parents=True)
    (tmp_path / "stand_in" / "__init__.py").write_text("raise ImportError('only the list is read')\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(speech, "_PACKAGE", "stand_in")
    british_spellings.cache_clear()
    yield tmp_path / "stand_in" / "normalizers" / "english.json"
    british_spellings.cache_clear()


@needs_spellings
@given(MARKED.map("".join))
@example("..one 's one a 's <($5 .>'s a ")
def test_asides_are_removed_as_the_library_does(text: str) -> None:
    basic = BasicTextNormalizer()
    assert english_normaliser()(text) == basic(EnglishTextNormalizer(british_spellings())(remove_sp(text, "en")))
    assert basic_normaliser()(text) == basic(remove_sp(text, ""))


@needs_spellings
@pytest.mark.parametrize(
    "text", ["(" * 100_000, "<" * 100_000, "[(" * 50_000, "<)>" + "(" * 100_000, "9" * 100_000, "答" * 100_000, ""]
)
def test_long_and_strange_transcripts_are_read_in_linear_time(text: str) -> None:
    assert ends_within(5.0, english_normaliser(), text)


@needs_spellings
def test_the_spellings_are_those_of_whispers_authors() -> None:
    pairs = british_spellings()
    assert len(pairs) == 1739
    assert (pairs["harbour"], pairs["storeys"], pairs["accessorise"]) == ("harbor", "stories", "accessorize")


def test_the_list_is_read_without_importing_the_package(package: Path) -> None:
    package.write_text(json.dumps({"quux": "kwux"}), "utf-8")
    assert english_normaliser()("The Quux, 5 colours") == "the kwux 5 colours"


def test_without_the_package_there_is_no_english_normaliser(monkeypatch: pytest.MonkeyPatch) -> None:
    british_spellings.cache_clear()
    monkeypatch.setattr(speech, "_PACKAGE", "no_package_of_this_name")
    with pytest.raises(NotEvaluated, match=r"lmms_eval\[asr\]"):
        english_normaliser()
    assert basic_normaliser()("Colour!") == "colour "


@pytest.mark.parametrize("content", ["[1]", '{"a": 1}', "{}", "not json", None])
def test_a_damaged_list_is_an_error(content: str | None, package: Path) -> None:
    if content is not None:
        package.write_text(content, "utf-8")
    with pytest.raises(DataError, match=r"english\.json"):
        english_normaliser()
