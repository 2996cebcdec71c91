from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks._task_utils import linguistic
from lmms_eval.tasks._task_utils.linguistic import (
    PACKAGES,
    PUNKT,
    WORDNET,
    Lemmatizer,
    data_folders,
    data_identity,
    find_package,
    open_linguistics,
)
from tests.cases import for_each
from tests.tasks.linguistic_kit import NLTK_DATA, needs_nltk_data
from tests.tasks.megabench.fuzzing import FUZZ, reply_text

SMALL = Lemmatizer(
    frozenset({"wa", "ha", "man", "men", "wolf", "fly", "glass", "dog", "goose"}),
    {"geese": ("goose",), "men": ("man",)},
)


def write_data(folder: Path) -> Path:
    """A small data folder: one abbreviation, one collocation, a few nouns."""
    punkt, wordnet = folder / PUNKT.place / "english", folder / WORDNET.place
    punkt.mkdir(parents=True)
    wordnet.mkdir(parents=True)
    (punkt / "abbrev_types.txt").write_text("mr\n")
    (punkt / "collocations.tab").write_text("##number##\tzoo\n")
    (punkt / "sent_starters.txt").write_text("then\n")
    (punkt / "ortho_context.tab").write_text("fox\t46\n")
    (wordnet / "index.noun").write_text("  1 licence\ndog n 1 0 1 0 02084071\nwolf n 1 0 1 0 02114100\n")
    (wordnet / "noun.exc").write_text("wolves wolf\n")
    return folder


def zip_data(folder: Path) -> None:
    """Replace the packages' folders by archives as NLTK's downloader leaves them."""
    for package in PACKAGES:
        path = folder / package.place
        with zipfile.ZipFile(path.with_suffix(".zip"), "w") as archive:
            for name in package.files:
                archive.write(path / name, f"{path.name}/{name}")
        shutil.rmtree(path)


@for_each(
    ("word", "lemma"),
    [
        ("was", "wa"), ("has", "ha"), ("men", "men"), ("wolves", "wolf"), ("flies", "fly"), ("glasses", "glass"),
        ("dogs", "dog"), ("geese", "goose"), ("cats", "cats"), ("", ""), ("s", "s"),
    ],
)  # fmt: skip
def test_lemma(word: str, lemma: str) -> None:
    assert SMALL.lemma(word) == lemma


@for_each("is_zipped", [False, True])
def test_data_from_folders_and_archives(tmp_path: Path, is_zipped: bool) -> None:
    write_data(tmp_path)
    before = data_identity(str(tmp_path))
    if is_zipped:
        zip_data(tmp_path)
    language = open_linguistics(str(tmp_path))
    assert language.sentences("Mr. Fox came. Then he left.") == ["Mr. Fox came.", "Then he left."]
    assert language.words("It's here. Go!") == ["It", "'s", "here", ".", "Go", "!"]
    assert [language.lemmatizer.lemma(word) for word in ("wolves", "dogs", "licence")] == ["wolf", "dog", "licence"]
    assert data_identity(str(tmp_path)) == before != ""


def test_another_release_of_the_tokeniser_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_data(tmp_path)
    assert linguistic.nltk_version() == metadata.version("nltk")
    before = data_identity(str(tmp_path))
    monkeypatch.setattr(linguistic, "nltk_version", lambda: "3.9.1")
    assert data_identity(str(tmp_path)) != before


def test_other_data_is_told_apart(tmp_path: Path) -> None:
    write_data(tmp_path)
    before = data_identity(str(tmp_path))
    (tmp_path / PUNKT.place / "english/abbrev_types.txt").write_text("dr\n")
    assert data_identity(str(tmp_path)) != before
    assert data_identity(str(tmp_path / "nothing")) == ""


def test_missing_data_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(NotEvaluated, match=r"punkt_tab and wordnet not found in .*lmms-eval fetch nltk.*--nltk_data"):
        open_linguistics(str(tmp_path))
    write_data(tmp_path)
    shutil.rmtree(tmp_path / WORDNET.place)
    with pytest.raises(NotEvaluated, match=r"data wordnet not found"):
        open_linguistics(str(tmp_path))


def test_stated_folders_stand_alone_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    stated = f"{first}{os.pathsep}{second}"
    assert data_folders(stated) == (first, second)
    monkeypatch.setenv("NLTK_DATA", stated)
    assert data_folders() == (first, second)
    write_data(second)
    assert find_package(PUNKT) == second / PUNKT.place
    monkeypatch.delenv("NLTK_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folders()[0] == tmp_path / "nltk_data"
    assert Path("/usr/share/nltk_data") in data_folders()


@for_each("is_zipped", [False, True])
@for_each(
    ("name", "content"),
    [
        ("collocations.tab", b"one two three\n"),
        ("ortho_context.tab", b"fox\tmany\n"),
        ("abbrev_types.txt", b"\xff\xfe\n"),
    ],
)
def test_damaged_data_is_no_score(tmp_path: Path, name: str, content: bytes, is_zipped: bool) -> None:
    write_data(tmp_path)
    (tmp_path / PUNKT.place / "english" / name).write_bytes(content)
    if is_zipped:
        zip_data(tmp_path)
    with pytest.raises(NotEvaluated, match="cannot be read"):
        open_linguistics(str(tmp_path))


def test_a_damaged_archive_is_no_score(tmp_path: Path) -> None:
    write_data(tmp_path)
    zip_data(tmp_path)
    path = tmp_path / "corpora/wordnet.zip"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(NotEvaluated, match=r"wordnet\.zip cannot be read"):
        open_linguistics(str(tmp_path))
    with pytest.raises(NotEvaluated):
        data_identity(str(tmp_path))


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_data(tmp_path)
    (tmp_path / WORDNET.place / "index.noun").write_bytes(b"a" * 10_000)
    zip_data(tmp_path)
    monkeypatch.setattr(linguistic, "MAX_FILE_BYTES", 9_999)
    with pytest.raises(NotEvaluated, match="more than 9999 bytes"):
        open_linguistics(str(tmp_path))


def test_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pickles beside or instead of the text files are never loaded."""
    write_data(tmp_path)
    mark = tmp_path / "mark"

    class Trap:
        def __reduce__(self) -> object:
            return Path.touch, (mark,)

    old = tmp_path / "tokenizers/punkt"
    (old / "PY3").mkdir(parents=True)
    for path in (old / "english.pickle", old / "PY3/english.pickle", tmp_path / PUNKT.place / "english.pickle"):
        path.write_bytes(pickle.dumps(Trap()))
    (tmp_path / PUNKT.place / "english/collocations.tab").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(NotEvaluated):
        open_linguistics(str(tmp_path))
    (tmp_path / PUNKT.place / "english/collocations.tab").write_text("a\tb\n")
    open_linguistics(str(tmp_path)).words("Mr. Fox came.")
    assert not mark.exists()
    pickle.loads((old / "english.pickle").read_bytes())  # the trap does work
    assert mark.exists()


def test_without_nltk_there_is_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_data(tmp_path)
    monkeypatch.setitem(sys.modules, "nltk.tokenize.destructive", None)
    with pytest.raises(NotEvaluated, match=r"nltk is missing: install lmms_eval\[metrics\]"):
        open_linguistics(str(tmp_path))


def test_nothing_is_written_and_nltk_searches_nothing(tmp_path: Path) -> None:
    """With a home and a folder that can only be read, in a process of its own."""
    write_data(tmp_path)
    program = (
        "import os, sys\n"
        "written = []\n"
        "def watch(event, arguments):\n"
        "    if event == 'open' and isinstance(arguments[1], str) and set(arguments[1]) & set('wax+'):\n"
        "        written.append(arguments[0])\n"
        "    if event == 'socket.connect': written.append(arguments)\n"
        "from lmms_eval.tasks._task_utils.linguistic import open_linguistics\n"
        "sys.dont_write_bytecode = True\n"
        "sys.addaudithook(watch)\n"
        "assert open_linguistics().words('Mr. Fox came.') == ['Mr.', 'Fox', 'came', '.']\n"
        "assert not written, written\n"
    )
    environ = {**os.environ, "NLTK_DATA": str(tmp_path), "HOME": str(tmp_path / "home")}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environ, cwd=Path.cwd()
    )
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "home").exists()


@needs_nltk_data
@pytest.mark.filterwarnings("ignore:The multilingual functions:UserWarning")
def test_as_nltk_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our readers give what NLTK's own give: parameters of Punkt, lemmas of all exceptions and of inflected nouns."""
    import nltk.data
    from nltk.corpus.reader.wordnet import WordNetCorpusReader
    from nltk.tokenize.punkt import load_punkt_params

    monkeypatch.setenv("NLTK_DATA", str(NLTK_DATA))
    language = open_linguistics(str(NLTK_DATA))
    own = language.sentences.__self__._params  # type: ignore[attr-defined]
    monkeypatch.setattr(nltk.data, "path", [str(NLTK_DATA)])
    theirs = load_punkt_params(nltk.data.find(f"{PUNKT.place}/english/"))
    for part in ("abbrev_types", "collocations", "sent_starters", "ortho_context"):
        assert getattr(own, part) == getattr(theirs, part), part
    assert isinstance(own.ortho_context, defaultdict)

    class Indexes(WordNetCorpusReader):
        def map_wn(self, version: str = "wordnet") -> dict[str, str]:  # the tests' copy has no synsets
            return {}

    reader = Indexes(nltk.data.find(WORDNET.place), None)
    nouns = sorted(language.lemmatizer.nouns)[::40]
    words = [*language.lemmatizer.exceptions, *nouns, *(noun + end for noun in nouns for end in ("s", "es", "en"))]
    for word in words:
        assert language.lemmatizer.lemma(word) == min(reader._morphy(word, "n"), key=len, default=word)


@needs_nltk_data
@FUZZ
@given(
    st.one_of(
        reply_text,
        st.lists(st.sampled_from(["Mr.", "A.", "cat!", "it's", "3.5", "\n", "...", '"x"', "("])).map(" ".join),
    )
)
def test_words_as_nltk_tokenises(text: str) -> None:
    from nltk.tokenize.destructive import NLTKWordTokenizer

    language = open_linguistics(str(NLTK_DATA))
    sentences = language.sentences(text)
    assert language.words(text) == [word for sentence in sentences for word in NLTKWordTokenizer().tokenize(sentence)]
    for word in language.words(text.lower()):
        assert 0 <= len(language.lemmatizer.lemma(word)) <= len(word) + 3
