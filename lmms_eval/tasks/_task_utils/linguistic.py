"""English sentences, words and noun lemmas from NLTK's data: finds the data and reads it.

Both packages (``punkt_tab``, ``wordnet``) are plain text. This module reads them itself, from the unpacked folder or
from the archive of NLTK's downloader, so that NLTK's loaders, which could unpickle files, never read a user's folder.
Nothing is downloaded.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import sys
import warnings
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated

MAX_FILE_BYTES = 64 * 2**20
"""Bytes of one file of the data; the largest, WordNet's list of nouns, has 5 MB."""
REMEDY = "install it with `lmms-eval fetch nltk` or give --nltk_data DIR"
NOUN_ENDINGS = (
    ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"),
    ("ies", "y"),
)  # fmt: skip
"""WordNet's rules of detachment for nouns."""
_READ_ERRORS = (OSError, KeyError, ValueError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


class Package(Struct, frozen=True):
    """A package of NLTK, with its files that are read."""

    name: str
    place: str
    """Folder below the data folder; the archive is next to it."""
    files: tuple[str, ...]


PUNKT = Package(
    "punkt_tab",
    "tokenizers/punkt_tab",
    tuple(
        f"english/{name}" for name in ("abbrev_types.txt", "collocations.tab", "sent_starters.txt", "ortho_context.tab")
    ),
)
WORDNET = Package("wordnet", "corpora/wordnet", ("index.noun", "noun.exc"))
PACKAGES = (PUNKT, WORDNET)


class Lemmatizer(Struct, frozen=True):
    """WordNet's morphology for nouns, as NLTK's ``WordNetLemmatizer`` applies it."""

    nouns: frozenset[str]
    exceptions: Mapping[str, tuple[str, ...]]

    def lemma(self, word: str) -> str:
        """Return the shortest candidate that WordNet has as a noun (``was`` gives ``wa``), else the word itself."""
        forms = self.exceptions.get(word)
        if forms is None:
            forms = tuple(word[: -len(old)] + new for old, new in NOUN_ENDINGS if word.endswith(old))
        return min((form for form in (word, *forms) if form in self.nouns), key=len, default=word)


class Linguistics(Struct, frozen=True, eq=False):
    """NLTK's sentence splitter (Punkt, English), its word tokeniser, and the lemmatiser."""

    sentences: Callable[[str], list[str]]
    tokenize: Callable[[str], list[str]]
    """Splits a sentence into words."""
    lemmatizer: Lemmatizer

    def words(self, text: str) -> list[str]:
        """Return the tokens of a text, sentence by sentence (NLTK's ``word_tokenize``)."""
        return [token for sentence in self.sentences(text) for token in self.tokenize(sentence)]


def data_folders(stated: str | None = None) -> tuple[Path, ...]:
    """Return the folders with NLTK data: only those stated (joined as in ``NLTK_DATA``), else NLTK's usual folders.

    ``None`` means the environment's ``NLTK_DATA``, which carries ``--nltk_data`` to the scoring processes.
    """
    stated = os.environ.get("NLTK_DATA", "") if stated is None else stated
    if stated:
        return tuple(Path(part).expanduser() for part in stated.split(os.pathsep) if part)
    prefix = Path(sys.prefix)
    shared = ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")
    parents = (Path("~").expanduser(), prefix, prefix / "share", prefix / "lib", *map(Path, shared))
    return tuple(parent / "nltk_data" for parent in parents)


def find_package(package: Package, stated: str | None = None) -> Path | None:
    """Return the folder or archive of a package; ``None`` without one."""
    for folder in data_folders(stated):
        path = folder / package.place
        for candidate in (path, path.with_suffix(".zip")):
            if candidate.is_file() or all((candidate / name).is_file() for name in package.files):
                return candidate
    return None


def data_identity(stated: str | None = None) -> str:
    """Return the hash of the files and of NLTK's release, which may change tokens and lemmas; empty without data.

    Raises ``NotEvaluated`` for damaged data.
    """
    digest = hashlib.sha256(nltk_version().encode())
    for package in PACKAGES:
        path = find_package(package, stated)
        if path is None:
            return ""
        for name in package.files:
            digest.update(_read(path, name))
    return digest.hexdigest()


def nltk_version() -> str:
    """Return the release of NLTK, whose word tokeniser differs between releases; empty if it is not installed."""
    try:
        return importlib.metadata.version("nltk")
    except importlib.metadata.PackageNotFoundError:
        return ""


def open_linguistics(stated: str | None = None) -> Linguistics:
    """Read the data in the ``stated`` folders (see ``data_folders``), once per process.

    Raises ``NotEvaluated`` if data or NLTK is missing, or the data is damaged; the reason explains what to do.
    """
    paths = [find_package(package, stated) for package in PACKAGES]
    missing = [package.name for package, path in zip(PACKAGES, paths, strict=True) if path is None]
    if missing:
        where = ", ".join(map(str, data_folders(stated)))
        raise NotEvaluated(f"NLTK's data {' and '.join(missing)} not found in {where}: {REMEDY}")
    punkt, wordnet = (path for path in paths if path is not None)
    return _open(punkt, wordnet)


@functools.lru_cache(maxsize=4)
def _open(punkt: Path, wordnet: Path) -> Linguistics:
    index, exceptions = (_lines(wordnet, name) for name in WORDNET.files)
    nouns = frozenset(line.split(" ", 1)[0] for line in index if not line.startswith(" "))
    forms = {words[0]: tuple(words[1:]) for words in (line.split() for line in exceptions) if words}
    lemmatizer = Lemmatizer(nouns, MappingProxyType(forms))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # from the many modules that NLTK imports
            from nltk.tokenize.destructive import NLTKWordTokenizer
            from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer
    except ImportError as error:
        raise NotEvaluated("nltk is missing: install lmms_eval[metrics]") from error
    parameters: Any = PunktParameters()
    abbreviations, collocations, starters, contexts = (_lines(punkt, name) for name in PUNKT.files)
    try:
        parameters.abbrev_types = set(abbreviations)
        parameters.sent_starters = set(starters)
        parameters.collocations = {(first, second) for first, second in (line.split("\t") for line in collocations)}
        parameters.ortho_context = defaultdict(int)
        for word, flags in (line.split("\t") for line in contexts):
            parameters.ortho_context[word] = int(flags)
    except ValueError as error:
        raise _damaged(punkt, error) from error
    return Linguistics(PunktSentenceTokenizer(parameters).tokenize, NLTKWordTokenizer().tokenize, lemmatizer)


def _lines(path: Path, name: str) -> list[str]:
    """Yield the lines that are not empty."""
    try:
        text = _read(path, name).decode()
    except UnicodeDecodeError as error:
        raise _damaged(path, error) from error
    return [line for line in text.replace("\r\n", "\n").split("\n") if line]


def _read(path: Path, name: str) -> bytes:
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive, archive.open(f"{path.stem}/{name}") as member:
                content = member.read(MAX_FILE_BYTES + 1)
        else:
            with open(path / name, "rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
    except _READ_ERRORS as error:
        raise _damaged(path, error) from error
    if len(content) > MAX_FILE_BYTES:
        raise _damaged(path, ValueError(f"{name} has more than {MAX_FILE_BYTES} bytes"))
    return content


def _damaged(path: Path, error: Exception) -> NotEvaluated:
    return NotEvaluated(f"NLTK's data {path} cannot be read ({error}): {REMEDY}")
