"""``lmms-eval card``: writes the report card of a run."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.cli.arguments import command_parser
from lmms_eval.cli.files import check_files, write_files
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import UsageError

if TYPE_CHECKING:
    from lmms_eval.results.run import Run

_FORMS = (".md", ".html")


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("card")
    parser.add_argument("run", metavar="RUN", help="output folder, results file, or FOLDER/STAMP")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="file to write: FILE.md or FILE.html; without an ending, both; default: MODEL_STAMP_card",
    )
    parser.add_argument(
        "--about", metavar="FILE", help="YAML file with answers, by key, to checklist items that a run cannot know"
    )
    given = parser.read(arguments)
    from lmms_eval.exchange.card import card_of
    from lmms_eval.results.run import load

    found = load(given.run)
    about = _about(given.about) if given.about else {}
    paths = _paths(given, found)
    check_files({"out": paths[0]} if len(paths) == 1 else {}, [given.about] if given.about else [], [given.run])
    card = card_of(found, about)
    for note in found.notes:
        complain(note)
    write_files({path: [card.html() if path.endswith(".html") else card.markdown()] for path in paths})
    emit(paths)
    return 0


def _paths(given: Namespace, found: Run) -> list[str]:
    from lmms_eval.utils import sanitize_model_name

    if given.out and Path(given.out).suffix in _FORMS:
        return [given.out]
    stem = found.source.name.removesuffix(".json").removesuffix("_results")
    name = given.out or f"{sanitize_model_name(found.name)}_{stem}_card"
    if Path(name).is_dir():
        raise UsageError(f"--out {name}: that is a folder")
    return [f"{name}{form}" for form in _FORMS]


def _about(file: str) -> Mapping[str, str]:
    """Read the answers that people add. Raises ``UsageError`` if the file is not a mapping of names to texts."""
    import yaml

    try:
        stated = yaml.safe_load(Path(file).read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"--about {file}: cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"--about {file}: not YAML: {' '.join(str(error).split()):.200}") from error
    if not isinstance(stated, dict) or not all(isinstance(x, str) for pair in stated.items() for x in pair):
        raise UsageError(f"--about {file}: write KEY: text for each item")
    return stated
