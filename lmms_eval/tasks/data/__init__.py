"""Data of tasks: local files read directly, everything else through the ``datasets`` library."""

from __future__ import annotations

from lmms_eval.tasks.data.documents import Document, Documents
from lmms_eval.tasks.data.splits import DataSet, open_data

__all__ = ["DataSet", "Document", "Documents", "open_data"]
