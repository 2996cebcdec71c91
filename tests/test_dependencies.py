"""What the package asks to be installed, against what its code imports and under which terms it comes."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import tomllib
from pathlib import Path

from tests.cases import for_each

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_OTHERS = {
    "openai",
    *(
        re.split(r"[<>=;]", line)[0].strip().lower()
        for extra in ("family", "lm-eval")
        for line in PROJECT["optional-dependencies"][extra]
    ),
}
"""Plugins and task files of the families import them."""
THROUGH_OTHERS = {"accelerate", "antlr4-python3-runtime", "tree-sitter-java", "tree-sitter-python", "tzdata"}
"""Used by transformers and launches, sympy, codebleu, zoneinfo."""
NAMES = {
    "pillow": "PIL",
    "pyyaml": "yaml",
    "google-genai": "google",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
    "opentelemetry-sdk": "opentelemetry",
    "text-unidecode": "text_unidecode",
}


def _name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def _required() -> list[str]:
    extras = PROJECT["optional-dependencies"]
    lines = [
        *PROJECT["dependencies"],
        *(line for part in extras if part not in ("dev", "docs", "all") for line in extras[part]),
    ]
    return sorted({_name(line) for line in lines})


def _imported() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "lmms_eval").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
        # Packages that are imported by their names.
        found |= set(
            re.findall(r"(?:import_module\(|import_sdk\(|module=|module = |name = |_PACKAGE = |in \()\"(\w+)", source)
        )
    return found


def test_what_is_installed_is_imported():
    names = {name: NAMES.get(name, name.replace("-", "_")) for name in _required()}
    imported = _imported()
    assert {name for name, module in names.items() if module not in imported} <= FOR_OTHERS | THROUGH_OTHERS


def test_every_requirement_has_a_pinned_version():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {_name(line) for line in lines if line and not line.startswith("#")}
    engines = {"vllm", "sglang", "diffusers"}  # they bring a torch of their own
    assert set(_required()) - pinned <= engines


@for_each("name", [_name(line) for line in PROJECT["dependencies"]])
def test_what_everybody_installs_may_be_used_under_other_terms_than_the_gpl(name):
    metadata = importlib.metadata.metadata(name)
    classifiers = [one for one in metadata.get_all("Classifier", []) if one.startswith("License ::")]
    terms = classifiers or [metadata.get("License-Expression") or metadata.get("License") or ""]
    assert any("GPL" not in one and "General Public" not in one for one in terms), terms


def test_what_only_others_import_is_in_no_extra_of_extras():
    extras = PROJECT["optional-dependencies"]
    assert not any(
        "family" in line for part in ("all", "dev") for line in extras[part] if line.startswith("lmms_eval[")
    )


def test_all_names_the_other_extras():
    extras = set(PROJECT["optional-dependencies"])
    line, *packages = PROJECT["optional-dependencies"]["all"]
    assert set(re.findall(r"\w+", line.partition("[")[2])) <= extras
    assert {*packages} < {*PROJECT["optional-dependencies"]["asr"]}  # whose other package is under the GPL
