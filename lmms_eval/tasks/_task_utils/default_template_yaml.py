"""Template of a task folder, at the family's path."""

from __future__ import annotations

from lmms_eval.compat.default_template import load_default_template_yaml as load_default_template_yaml
