"""The benchmark's page names every option, form, type of language task, network and status that there is."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import get_args

import yaml
from msgspec import structs

import lmms_eval.tasks.general_bench as package
from lmms_eval.tasks.general_bench import networks
from lmms_eval.tasks.general_bench.data.forms import load_field_maps
from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.items import Form
from lmms_eval.tasks.general_bench.networks.base import Network
from lmms_eval.tasks.general_bench.nlp.types import TYPES
from lmms_eval.tasks.general_bench.prompts.forms import needs_file
from lmms_eval.tasks.general_bench.settings import Settings
from tests.cases import for_each

PAGE = Path(package.__path__[0]) / "README.md"
GIVEN_ELSEWHERE = {"data_root", "data_folder"}
"""Options that the command line and the demonstration's YAML set."""


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the table whose first cell begins so: names in the first cell to the other cells."""
    lines = iter(PAGE.read_text(encoding="utf-8").splitlines())
    next(line for line in lines if line.startswith(f"| {heading}"))
    next(lines)
    rows = {}
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        rows |= dict.fromkeys(re.findall(r"`([^`]+)`", cells[0]), cells[1:])
    return rows


def test_every_option_is_there():
    fields = {field.name: field.default for field in structs.fields(Settings)}
    rows = table("option (`--task_kwargs`")
    assert set(rows) == set(fields) - GIVEN_ELSEWHERE
    for name in (
        "predictions", "prediction_form", "media_answers", "extraction", "points", "fad_network", "wer_words",
        "tracking", "s_measure",
    ):  # fmt: skip
        assert rows[name][0] == f"`{fields[name]}`"


def test_every_form_is_there_and_whether_it_is_asked():
    rows = table("form |")
    assert set(rows) == set(get_args(Form))
    assert {name for name, cells in rows.items() if cells[1] == "file"} == {
        name for name in get_args(Form) if needs_file(name)
    }


def test_every_type_of_language_tasks_is_there():
    assert set(table("`type` (NLP)")) == set(TYPES)


def test_every_network_is_there():
    modules = [
        importlib.import_module(f"{networks.__name__}.{one.name}") for one in pkgutil.iter_modules(networks.__path__)
    ]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Network)]
    rows = table("key in `DIR`")
    assert set(rows) == {network.key for network in found}
    assert all(network.model_id in rows[network.key][0] for network in found)


def test_the_field_map_is_one(tmp_path):
    example = re.search(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    path = tmp_path / "my_maps.yaml"
    path.write_text(example[1], encoding="utf-8")
    (name,) = yaml.safe_load(example[1])
    fields = load_field_maps(path)(find_task(name))
    assert (fields.form, fields.output) == ("boxes", (("output", "objects"),))


@for_each("target", sorted(set(re.findall(r"\]\(([^)#]+)", PAGE.read_text(encoding="utf-8")))))
def test_links_lead_somewhere(target):
    assert (PAGE.parent / target).exists()
