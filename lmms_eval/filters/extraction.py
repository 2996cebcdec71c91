"""Names that task files of the family import from this module."""

from __future__ import annotations

from lmms_eval.compat.filters import ExtendedRegexFilter as ExtendedRegexFilter
from lmms_eval.compat.filters import SimpleMultiChoiceRegexFilter as SimpleMultiChoiceRegexFilter
from lmms_eval.filters.patterns import MultiChoiceRegexFilter as MultiChoiceRegexFilter
from lmms_eval.filters.patterns import RegexFilter as RegexFilter
from lmms_eval.filters.patterns import WhitespaceFilter as WhitespaceFilter
