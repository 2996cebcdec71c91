"""The names that plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.imports import MissingOptionalDependencyError as MissingOptionalDependencyError
from lmms_eval.compat.imports import is_package_available as is_package_available
from lmms_eval.compat.imports import make_lazy_getattr as make_lazy_getattr
from lmms_eval.compat.imports import optional_import as optional_import
from lmms_eval.compat.imports import require_package as require_package
