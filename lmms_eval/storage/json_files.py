"""Reading JSON files with errors that name the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.utils.plain_files import read_plain


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        DataError: it cannot be read, or is cut short or damaged.
    """
    try:
        return json.loads(read_plain(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no complete JSON file: {error}") from error
