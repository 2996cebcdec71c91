"""The name that task files of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.media_reference import resolve_media_reference as resolve_media_reference
