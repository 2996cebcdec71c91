"""``lmms-eval models``: lists the models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lmms_eval.cli.arguments import add_plugins_flag, command_parser, plugins_of
from lmms_eval.cli.output import emit

_NAME, _TYPE = 28, 14


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("models")
    parser.add_argument("--aliases", action="store_true", help="show other names of the models too")
    add_plugins_flag(parser)
    given = parser.read(arguments)
    emit(model_lines(given.aliases, plugins_of(given)))
    return 0


def model_lines(aliases: bool, plugins: Sequence[str]) -> list[str]:
    """Return the table of models, ordered by kind, with the number of each kind at the end."""
    from lmms_eval.models.registry import ModelRegistry

    models = ModelRegistry(plugins).list_models()
    head = f"{'Name':<{_NAME}}{'Type':<{_TYPE}}" + ("Aliases" if aliases else "")
    lines = [f"Registered Models ({len(models)} total)", "", head.rstrip(), "-" * (_NAME + _TYPE + 14)]
    for model in models:
        names = ", ".join(model.aliases) if aliases else ""
        lines.append(f"{model.model_id:<{_NAME}}{model.kind:<{_TYPE}}{names}".rstrip())
    counts = Counter(model.kind for model in models)
    kinds = ("chat", "chat+simple", "simple")
    return [*lines, "", ", ".join(f"{kind}: {counts[kind]}" for kind in kinds)]
