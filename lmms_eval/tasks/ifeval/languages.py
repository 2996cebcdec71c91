"""The language that a text is written in, by the package langdetect with a fixed seed."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import NotEvaluated

INSTALL_HINT = "the language of texts needs the package langdetect: pip install 'lmms_eval[metrics]'"
_SEED = 0


def is_language(text: str, language: str) -> bool:
    """Tell whether a text is written in a language, by its code; yes where no language can be told.

    Raises:
        NotEvaluated: the package is not installed.
    """
    detector = _detectors().create()
    try:
        detector.append(text)
        return bool(detector.detect() == language)
    except _undetectable():
        return True


@functools.cache
def _detectors() -> Any:
    """The package's profiles of all its languages, and a seed of our own: without one its verdicts are random."""
    try:
        from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory
    except ImportError as error:
        raise NotEvaluated(INSTALL_HINT) from error
    factory = DetectorFactory()
    factory.load_json_profile([path.read_text("utf-8") for path in sorted(Path(PROFILES_DIRECTORY).iterdir())])
    factory.seed = _SEED
    return factory


def _undetectable() -> type[Exception]:
    from langdetect.lang_detect_exception import LangDetectException

    found: type[Exception] = LangDetectException
    return found
