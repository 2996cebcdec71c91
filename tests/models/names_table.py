"""The table of the family's model names: ``python -m tests.models.names_table`` writes ``docs/models/names.md``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lmms_eval.models.families.table import FAMILIES
from lmms_eval.models.registry import BUILTIN_MANIFESTS, NAMED_SERVICES, foreign_names

DOCUMENT = Path(__file__).parents[2] / "docs" / "models" / "names.md"
NAMES = Path(__file__).with_name("family_names.txt").read_text("utf-8").split()
GROUPS = {
    "hf": (
        "Families over `hf`",
        "Architectures that transformers has ([hf.md](hf.md)); a tiny model of each answers a question in the tests.",
    ),
    "chat": (
        "Checkpoints with a `chat` of their own",
        "They run behind `--trust_remote_code` ([chat.md](chat.md)).",
    ),
    "service": (
        "Services",
        "Back ends over the network with address, key and model of the service ([services.md](services.md)).",
    ),
    "other": ("Engines and others", ""),
    "needs": (
        "Names that need a code base of their own",
        "`--model NAME` ends with one line that names the reason. The family's class runs as a plugin "
        "([model_guide.md](../model_guide.md)); the model itself may run under another name where transformers or an "
        "engine has its architecture.",
    ),
}
HEAD = """# Names of models

Every model name of the family, and what it does here. Written by `python -m tests.models.names_table`.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A name of the family."""

    name: str
    group: str
    said: str


def rows() -> list[Row]:
    """A row for each name of the family, in order of names.

    Raises:
        KeyError: a name neither runs nor is known as one that needs more.
    """
    own = {manifest.model_id: manifest for manifest in BUILTIN_MANIFESTS}
    targets = {alias: manifest.model_id for manifest in BUILTIN_MANIFESTS for alias in manifest.aliases}
    foreign = foreign_names()
    made = []
    for name in NAMES:
        if name in foreign:
            made.append(Row(name, "needs", foreign[name]))
            continue
        target = name if name in own else targets[name]
        service = NAMED_SERVICES.get(name)
        said = "runs" if name == target else f"another name of `{target}`"
        if service is not None:
            place = f" at `{service.base_url}`" if service.base_url else ""
            said = f"`{service.backend}`{place}, model `{service.model or 'by name'}`"
            said += "".join(f", `{key}={str(value).lower()}`" for key, value in service.fixed.items())
        made.append(Row(name, _group(target, str(own[target].chat_class_path), service is not None), said))
    return made


def _group(target: str, path: str, is_service: bool) -> str:
    if target in FAMILIES or target in ("hf", "whisper"):
        return "hf"
    if ".chat_form." in path:
        return "chat"
    return "service" if is_service or target in ("openai", "anthropic", "gemini", "litellm") else "other"


def document() -> str:
    found = rows()
    parts = [HEAD]
    for group, (title, lead) in GROUPS.items():
        lines = [f"| `{row.name}` | {row.said} |" for row in found if row.group == group]
        head = "| name | needs |" if group == "needs" else "| name | here |"
        parts.append(
            "\n".join([f"## {title} ({len(lines)})", "", *([lead, ""] if lead else []), head, "|---|---|", *lines, ""])
        )
    return "\n".join(parts)


if __name__ == "__main__":
    DOCUMENT.write_text(document(), "utf-8")
