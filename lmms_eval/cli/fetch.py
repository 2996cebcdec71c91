"""``lmms-eval fetch``: data that scoring needs and that no package carries."""

from __future__ import annotations

import http.client
import io
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

from lmms_eval.cli.arguments import command_parser
from lmms_eval.cli.output import emit
from lmms_eval.errors import LmmsEvalError, UsageError

_FAILURES = (ValueError, OSError, http.client.HTTPException, EOFError)
"""Errors that NLTK's downloader raises for a server, a name, an archive or a folder that cannot be used."""


class FetchError(LmmsEvalError):
    """The data could not be fetched."""


def run(arguments: Sequence[str]) -> int:
    from lmms_eval.tasks._task_utils.linguistic import data_folders

    parser = command_parser("fetch", "install data that scoring needs; nothing is ever fetched while scoring")
    parser.add_argument("what", choices=("nltk",), help="nltk: English sentences (punkt_tab) and nouns (wordnet)")
    parser.add_argument("--to", metavar="DIR", help="folder (default: the first of NLTK_DATA, else ~/nltk_data)")
    given = parser.parse_args(list(arguments))
    default = os.environ.get("NLTK_DATA", "").split(os.pathsep)[0] or "~/nltk_data"
    folder = Path(given.to or default).expanduser().absolute()
    fetch_nltk(folder)
    emit(f"NLTK's data: {folder}")
    if given.to and folder not in [searched.absolute() for searched in data_folders()]:
        emit(f"give --nltk_data {folder} to evaluations, or set NLTK_DATA")
    return 0


def fetch_nltk(folder: Path) -> None:
    """Download both packages with NLTK's downloader and read them once.

    Raises:
        UsageError: NLTK is not installed.
        FetchError: the packages cannot be downloaded, written or read.
    """
    from lmms_eval.api.outcome import NotEvaluated
    from lmms_eval.tasks._task_utils.linguistic import PACKAGES, open_linguistics

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the many modules that NLTK imports
            from nltk.downloader import Downloader
    except ImportError as error:
        raise UsageError("fetch nltk: nltk is missing; pip install 'lmms_eval[metrics]'") from error
    downloader = Downloader()
    for package in PACKAGES:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            downloader.download(
                package.name, download_dir=str(folder), quiet=True, raise_on_error=True, print_error_to=io.StringIO()
            )
        except _FAILURES as error:
            raise FetchError(
                f"fetch nltk: {package.name} cannot be installed in {folder}: {error}. Without a network, copy the "
                "folder nltk_data of another machine and name it with --nltk_data DIR"
            ) from error
    try:
        open_linguistics(str(folder))
    except NotEvaluated as unusable:
        raise FetchError(f"fetch nltk: what was downloaded cannot be used: {unusable.reason}") from unusable
