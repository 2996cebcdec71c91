"""Agreement of two judges: ``python -m lmms_eval.tasks.mmie.compare FIRST SECOND``, two files of scores."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.mmie.scores_file import compare_judges
from lmms_eval.utils.terminal import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the measures as JSON. Return 2 if a file cannot be used."""
    parser = argparse.ArgumentParser(prog="compare", description=__doc__)
    parser.add_argument("first", type=Path, help="scores of one judge: a run's mmie scores CSV, or main.py's results")
    parser.add_argument("second", type=Path, help="those of another judge, or of the same judge asked again")
    given = parser.parse_args(arguments)
    try:
        found = compare_judges(given.first, given.second)
    except LmmsEvalError as error:
        sys.stderr.write(f"{printable(str(error))}\n")
        return error.exit_code
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
