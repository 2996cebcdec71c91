"""The names that plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.plugins.chat_mixin import IMAGE_KWARGS as IMAGE_KWARGS
from lmms_eval.compat.plugins.chat_mixin import VIDEO_KWARGS as VIDEO_KWARGS
from lmms_eval.compat.plugins.chat_mixin import ChatMixin as ChatMixin
