"""Tasks that are sound, broken in every way, or lack something: what the check says of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest
from msgspec import structs

from lmms_eval.checks.findings import CheckReport, Checks, check_lines, joined
from lmms_eval.checks.workers import CheckOptions, check_tasks
from lmms_eval.tasks.catalogue import Catalogue
from tests.painting import png

HEAD = """\
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: rows.jsonl}}}}
test_split: test
"""
COMMON = "doc_to_text: question\ndoc_to_target: answer\n"
MATCH = "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
OWN = "process_results: !function utils.FUNCTION\nmetric_list: [{metric: m, aggregation: mean}]\n"
TASKS = {
    "sound": COMMON + MATCH,
    "pictured": COMMON + MATCH + "doc_to_visual: pictures\n",
    "no_picture": COMMON + MATCH + "doc_to_visual: lost\n",
    "no_function": COMMON + MATCH + "doc_to_visual: !function utils.picture\n",
    "no_package": COMMON + OWN.replace("utils.FUNCTION", "needs_package.score"),
    "no_name": COMMON + OWN.replace("utils.FUNCTION", "needs_name.score"),
    "exits_on_import": COMMON + OWN.replace("utils.FUNCTION", "exits.score"),
    "raises": COMMON + OWN.replace("FUNCTION", "raising"),
    "exits": COMMON + OWN.replace("FUNCTION", "exiting"),
    "crashes": COMMON + OWN.replace("FUNCTION", "crashing"),
    "hangs": COMMON + OWN.replace("utils.FUNCTION", "hanging.score"),
    "downloads": COMMON + OWN.replace("FUNCTION", "downloading"),
    "always_right": COMMON + OWN.replace("FUNCTION", "generous").replace("mean}", "mean, range: [0, 1]}"),
    "never_right": COMMON + OWN.replace("FUNCTION", "strict").replace("mean}", "mean, range: [0, 1]}"),
    "counts_too": COMMON
    + "process_results: !function utils.counting\nmetric_list:\n"
    + "- {metric: m, aggregation: mean}\n- {metric: n, aggregation: !function utils.total}\n",
    "gives_percent": COMMON + OWN.replace("FUNCTION", "percent").replace("mean}", "mean, range: [0, 1]}"),
    "gives_text": COMMON + OWN.replace("FUNCTION", "wordy"),
    "judged_column": COMMON + OWN.replace("FUNCTION", "judged") + "doc_to_judge: !function utils.asks_column\n",
    "judged_scoring": COMMON + OWN.replace("FUNCTION", "judged") + "doc_to_judge: !function utils.asks\n",
    "judged_well": COMMON + OWN.replace("FUNCTION", "judged_well") + "doc_to_judge: !function utils.asks\n",
    "tells_nothing": COMMON + OWN.replace("FUNCTION", "generous"),
    "no_aggregation": COMMON + "metric_list: [{metric: exact_match, aggregation: meann}]\n",
    "aggregation_raises": COMMON
    + "process_results: !function utils.generous\nmetric_list: [{metric: m, aggregation: !function utils.raising}]\n",
    "aggregation_raises_over_all": COMMON
    + "process_results: !function utils.generous\nmetric_list: [{metric: m, aggregation: !function utils.raising}]\n",
    "no_packages": COMMON + OWN.replace("utils.FUNCTION", "needs_packages.score"),
    "wrong_column": MATCH + "doc_to_text: '{{wording}}'\ndoc_to_target: answer\n",
    "choices": COMMON + "output_type: multiple_choice\ndoc_to_choice: options\n",
}
UTILS = """
import os, sys, urllib.request

def raising(*args, **kwargs):
    raise KeyError("colour")

def percent(doc, results):
    return {"m": 100.0 if results[0] else 0.0}

def wordy(doc, results):
    return {"m": "yes"}

def asks(doc, results):
    return [{"name": "n", "prompt": results[0], "reader": "binary"}]

def asks_column(doc, results):
    return [{"name": "n", "prompt": doc["wording"], "reader": "binary"}]

def judged_well(doc, results, verdicts):
    from lmms_eval.api import Unscored
    return {"m": float(verdicts["n"].text) if verdicts else Unscored("no judge")}

def judged(doc, results, verdicts):
    from lmms_eval.api import Unscored
    return {"m": float(verdicts["n"].txt) if verdicts else Unscored("no judge")}

def exiting(doc, results):
    sys.exit("no more")

def crashing(doc, results):
    os._exit(7)

def downloading(doc, results):
    return {"m": len(urllib.request.urlopen("http://192.0.2.1/weights").read())}

def generous(doc, results):
    return {"m": 1.0}

def counting(doc, results):
    return {"m": float(results[0] == doc["answer"]), "n": 1}

def total(items):
    return sum(items)

def strict(doc, results):
    return {"m": 0.0}
"""
EXPECTED = {
    "sound": ("ok", "", ""),
    "pictured": ("ok", "", ""),
    "choices": ("ok", "", ""),
    "counts_too": ("ok", "", ""),
    "tells_nothing": ("doubtful", "gold", "no full marks"),
    "no_picture": ("skipped", "prompt", "file not found"),
    "no_function": ("failed", "functions", "task file wrong"),
    "no_package": ("failed", "functions", "package missing"),
    "no_name": ("failed", "functions", "name not in this version"),
    "exits_on_import": ("failed", "functions", "code exits"),
    "raises": ("failed", "gold", "scoring raises"),
    "exits": ("failed", "gold", "scoring raises"),
    "crashes": ("failed", "gold", "ends the process"),
    "hangs": ("failed", "functions", "hangs"),
    "downloads": ("skipped", "gold", "needs the network"),
    "always_right": ("doubtful", "empty", "above the floor"),
    "never_right": ("doubtful", "gold", "no full marks"),
    "no_aggregation": ("failed", "metrics", "unknown name"),
    "aggregation_raises": ("doubtful", "metrics", "aggregation raises on a sample"),
    "aggregation_raises_over_all": ("failed", "metrics", "aggregation wrong"),
    "gives_percent": ("doubtful", "gold", "no full marks"),
    "gives_text": ("failed", "metrics", "aggregation wrong"),
    "judged_column": ("failed", "gold", "function raises"),
    "judged_scoring": ("doubtful", "gold", "scoring of a judge's reply raises"),
    "judged_well": ("skipped", "gold", "cannot be scored here"),
    "no_packages": ("failed", "functions", "package missing"),
    "wrong_column": ("failed", "data", "data unusable"),
    "no_rows": ("skipped", "data", "data not downloaded"),
    "on_the_hub": ("skipped", "data", "data not downloaded"),
    "whole": ("ok", "", ""),
    "lacking": ("failed", "group", "task file wrong"),
    "inline": ("failed", "metrics", "unknown name"),
    "around": ("ok", "", ""),
}


def write_folder(folder: Path) -> Path:
    (folder / "deep").mkdir(parents=True)
    (folder / "p.png").write_bytes(png(9))
    rows = [
        {"question": f"Which? {i}", "answer": "red", "options": ["red", "blue"], "pictures": [str(folder / "p.png")],
         "lost": [str(folder / "lost.png")]}
        for i in range(4)
    ]  # fmt: skip
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for name, keys in TASKS.items():
        rows_file = "few.jsonl" if name.endswith("_over_all") else "rows.jsonl"
        (folder / f"{name}.yaml").write_text(HEAD.format(name=name).replace("rows.jsonl", rows_file) + keys)
    (folder / "utils.py").write_text(dedent(UTILS))
    (folder / "needs_package.py").write_text("import sacrebleu_of_nobody\n\ndef score(doc, results): ...\n")
    (folder / "few.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows[:2]))
    (folder / "needs_packages.py").write_text(
        "import json, os.path\nimport yaml\ntry:\n    import nobody_optional\nexcept ImportError: ...\n"
        "import nobody_first as n\nfrom azure.identity import X\nfrom reka.client import Reka\nif True:\n"
        "    from latex2sympy2 import latex2sympy\n\ndef score(doc, results):\n    import nobody_inside\n"
    )
    (folder / "needs_name.py").write_text("from lmms_eval.utils import warp\n\ndef score(doc, results): ...\n")
    (folder / "hanging.py").write_text("import time\n\nwhile True:\n    time.sleep(0.1)\n")
    (folder / "exits.py").write_text("import sys\nsys.exit('no key')\n")
    (folder / "no_rows.yaml").write_text(
        HEAD.format(name="no_rows").replace("rows.jsonl", "lost.jsonl") + COMMON + MATCH
    )
    hub = f"task: on_the_hub\ndataset_path: nobody/nothing\ntest_split: test\n{COMMON}{MATCH}"
    (folder / "on_the_hub.yaml").write_text(hub)
    (folder / "whole.yaml").write_text("group: whole\ntask: [sound, choices]\n")
    (folder / "lacking.yaml").write_text("group: lacking\ntask: [sound, nowhere]\n")
    around = {"group": "around", "task": [{"task": "inline", "metric_list": [{"metric": "x"}],
              "dataset_path": "json", "doc_to_text": "question", "doc_to_target": "answer", "test_split": "test",
              "dataset_kwargs": {"data_files": {"test": "rows.jsonl"}}}]}  # fmt: skip
    (folder / "around.yaml").write_text(json.dumps(around))
    (folder / "hangs.yaml").rename(folder / "hangs.txt")
    (folder / "unreadable.yaml").write_text("task: [unreadable\n")
    return folder


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Checks:
    folder = write_folder(tmp_path_factory.mktemp("checks") / "tasks")
    options = CheckOptions(processes=1, include_paths=[str(folder)])
    found = check_tasks(Catalogue([folder], include_defaults=False), [], options)
    (folder / "hangs.txt").rename(folder / "hangs.yaml")
    # By itself: a limit that ends it soon would end others too where the machine is busy.
    catalogue = Catalogue([folder], include_defaults=False)
    return joined([found, check_tasks(catalogue, ["hangs"], structs.replace(options, timeout_s=1.0))])


@pytest.fixture(scope="module")
def reports(checks: Checks) -> Mapping[str, CheckReport]:
    return {each.name: each for each in checks.checked}


@pytest.mark.parametrize("name", EXPECTED)
def test_finding(name: str, reports: Mapping[str, CheckReport]) -> None:
    each = reports[name]
    worst = each.decisive
    found = (each.status, "", "") if worst is None else (each.status, worst.step, worst.kind)
    assert found == EXPECTED[name], each


def test_every_name_is_reported_once(checks: Checks) -> None:
    names = [each.name for each in checks.checked]
    files = [name for name in names if name.endswith("unreadable.yaml")]
    assert len(files) == 1
    assert sorted(set(names) - set(files)) == sorted(EXPECTED)
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no_package", "pip install sacrebleu-of-nobody"),
        ("no_name", "lmms_eval.utils.warp is not part of this version"),
        ("no_rows", "lost.jsonl"),
        ("on_the_hub", "the cache only"),
        ("never_right", "m of reference answers is 0, full marks are 1"),
        ("always_right", "m of empty answers is 1, the floor is 0"),
        ("raises", "utils.py"),
        ("hangs", "no end within 1 s"),
        ("crashes", "code 7"),
        ("no_aggregation", "did you mean mean"),
        ("no_aggregation", "known: acc_all,"),
        ("gives_percent", "m of reference answers is 100, outside of the range 0 to 1 that metric_list states"),
        ("gives_text", "scoring gave the text 'yes'; return a number"),
        ("judged_column", "doc_to_judge raised KeyError: 'wording'"),
        ("judged_scoring", "with the reply '1' of a judge: process_results raised AttributeError"),
    ],
)
def test_message_says_where_and_what_to_do(name: str, text: str, reports: Mapping[str, CheckReport]) -> None:
    worst = reports[name].decisive
    assert worst is not None
    assert text in worst.message


def test_report_puts_what_is_broken_first(checks: Checks) -> None:
    lines = check_lines(checks)
    outcomes = [line.split("|")[1].strip() for line in lines[0].splitlines()[2:]]
    order = ["broken", "warning", "skipped"]
    assert outcomes == sorted(outcomes, key=order.index)
    assert set(outcomes) == set(order)
    assert lines[-1].startswith("30 tasks, 3 groups, 1 file checked: 17 broken, 6 warnings, 5 skipped, 6 OK (")
    assert not checks.is_sound()


def test_processes_share_the_folders(tmp_path: Path) -> None:
    for number in range(6):
        folder = tmp_path / f"set_{number % 2}"
        folder.mkdir(exist_ok=True)
        (folder / f"t{number}.yaml").write_text(HEAD.format(name=f"t{number}") + COMMON + MATCH)
    (tmp_path / "all.yaml").write_text("group: all\ntask: [t5, t0]\n")
    catalogue, options = Catalogue([tmp_path], include_defaults=False), CheckOptions(include_paths=[str(tmp_path)])
    found = check_tasks(catalogue, [], options)
    assert found.processes == 2
    named = check_tasks(catalogue, ["all"], options)
    assert {each.name for each in named.checked} == {"all", "t0", "t5"}
    assert named.processes == 2
    assert {each.name: each.status for each in found.checked} == {
        "all": "ok", **dict.fromkeys((f"t{number}" for number in range(6)), "skipped")
    }  # fmt: skip


def test_all_absent_packages_of_a_file_are_told_at_once(reports: Mapping[str, CheckReport]) -> None:
    message = reports["no_packages"].decisive.message  # type: ignore[union-attr]
    assert "absent here: nobody_first, azure.identity, reka.client, latex2sympy2;" in message
    for part in ("pip install azure-identity nobody-first reka-api, if these", "runtime 4.7.2", "lmms_eval[math]"):
        assert part in message
    assert "optional" not in message and "inside" not in message and "pip install latex2sympy2," not in message
