"""``constrained_generation``: texts and poems that must keep constraints on words, lines, rhymes and metre."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from lmms_eval.tasks._task_utils.linguistic import open_linguistics
from lmms_eval.tasks.megabench.conversions.literals import ConversionError
from lmms_eval.tasks.megabench.metrics.constraints_verse import clean_lines, poetry_meter, rhyming_scheme, syllables
from lmms_eval.tasks.megabench.metrics.constraints_words import acrostic, contain, length
from lmms_eval.tasks.megabench.metrics.values import NO_DATA, DetailedScore, OutsideData

_VERSE: Mapping[str, Callable[[list[str], str], bool]] = MappingProxyType(
    {"syllables": syllables, "rhyming_scheme": rhyming_scheme, "poetry_meter": poetry_meter}
)


def constrained_generation(response: Any, context: Mapping[str, Any], data: OutsideData = NO_DATA) -> DetailedScore:
    """Return 1 if the text keeps every constraint of the context, else 0; the information lists them.

    A blank value is no constraint; an unknown name is never kept. Raises ``NotEvaluated`` if a constraint needs missing
    data; a value that is not a text may raise any error.
    """
    if not context:
        raise ConversionError("the evaluation context has no constraints")
    kept = {name: int(_keeps(response, name, value, data)) for name, value in context.items()}
    return DetailedScore(float(min(kept.values())), "\t".join(f"{name}: {score}" for name, score in kept.items()))


def _keeps(response: Any, name: str, value: str, data: OutsideData) -> bool:
    if not value.strip():
        return True
    if "contain" in name:
        return contain(response, name, value, functools.partial(open_linguistics, data.nltk_data))
    if "length" in name:
        return length(response, value)
    if "acrostic" in name:
        return acrostic(response, value, alliteration="acrostic_alliteration" in name)
    check = _VERSE.get(name)
    return check is not None and check(clean_lines(response), value)
