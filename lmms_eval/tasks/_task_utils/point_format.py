"""Points in pictures, at the family's path."""

from __future__ import annotations

from lmms_eval.compat.points import parse_point2d as parse_point2d
