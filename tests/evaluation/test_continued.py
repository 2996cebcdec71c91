"""Runs that are broken off, while the task changes, and started again, each start in a process of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from PIL import Image

from tests import forks

DOCUMENTS = 12
START = """
import sys
from pathlib import Path
from lmms_eval.api.request import Response
from lmms_eval.errors import LmmsEvalError
from lmms_eval.evaluation.run import run
from lmms_eval.media import image_url
from tests.evaluation.kit import Told, config

tmp, first, fails_from = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
class Seen(Told):
    def prepare(self, request):
        messages = request.build_messages()
        for message in messages.messages:
            for part in message.content:
                if part.type == "image":
                    image_url(part.url)
        return request.with_payload(messages, 0)

    def respond(self, stream):
        while requests := stream.take(1):
            request = requests[0]
            print("asked", request.doc_id, repr(request.context))
            failed = request.doc_id >= fails_from
            yield Response.failure(request.id, "timeout", "no answer") if failed else Response(request.id, text="yes")
try:
    report = run(config(tmp, tasks="mine"), Seen())
except LmmsEvalError as error:
    print("error", error)
    sys.exit(error.exit_code)
print("score", report.results["results"]["mine"].get("acc,none"))
sys.exit(report.exit_code)
"""
YAML = """
task: mine
dataset_path: json
dataset_kwargs: {data_files: data.jsonl}
test_split: train
output_type: generate_until
doc_to_text: !function utils.doc_to_text
doc_to_visual: !function utils.doc_to_visual
doc_to_target: answer
process_results: !function utils.process_results
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
"""
UTILS = """
from pathlib import Path
from .helper import score, prompt
HERE = Path(__file__).parent

def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    return prompt(doc) + (HERE / "prompt.txt").read_text()

def doc_to_visual(doc):
    from PIL import Image
    return [Image.open(HERE / doc["picture"])]

def process_results(doc, results):
    return {"acc": score(results[0])}
"""
HELPER = """
import os
def score(answer):
    return 1.0
def prompt(doc):
    return doc["question"] + os.environ.get("SUFFIX", "")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tasks"
    made.mkdir()
    for name, text in {"mine.yaml": YAML, "utils.py": UTILS, "helper.py": HELPER, "prompt.txt": " Answer."}.items():
        (made / name).write_text(dedent(text), encoding="utf-8")
    rows = [{"question": f"{n}?", "answer": "yes", "picture": f"pictures/{n}.png"} for n in range(DOCUMENTS)]
    (made / "data.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (made / "pictures").mkdir()
    for number in range(DOCUMENTS):
        paint(made, number, number)
    return made


def paint(folder: Path, number: int, colour: int) -> None:
    Image.new("RGB", (8, 8), (colour, 0, 0)).save(folder / "pictures" / f"{number}.png")


def start(folder: Path, fails_from: int = DOCUMENTS, **environment: str) -> tuple[int, list[int], str, str]:
    """Start the run; returns exit code, documents asked, score and error."""
    words = ["-c", START, str(folder.parent), "0", str(fails_from)]
    done = forks.run(*words, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment})
    lines: dict[str, list[Any]] = {"asked": [], "score": [""], "error": [""]}
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word in lines:
            lines[word].append(rest)
    assert done.returncode in (0, 2, 3), done.stderr
    asked = sorted(int(rest.split()[0]) for rest in lines["asked"])
    return done.returncode, asked, lines["score"][-1], lines["error"][-1]


def edit(folder: Path, file: str, old: str, new: str) -> None:
    """Change a file within the second in which it was written, so that Python takes its old bytecode for current."""
    path = folder / file
    before = path.stat()
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_run_goes_on_where_nothing_has_changed(folder: Path) -> None:
    assert start(folder, fails_from=8)[0] == 3
    assert start(folder) == (0, [8, 9, 10, 11], "1.0", "")


def test_a_changed_helper_of_the_scorer_scores_all_answers_again(folder: Path) -> None:
    start(folder, fails_from=8)
    edit(folder, "helper.py", "return 1.0", "return 0.0")
    code, _, score, _ = start(folder)
    assert (code, score) == (0, "0.0")  # neither of them mixed


@pytest.mark.parametrize(("file", "old", "new"), [
    ("helper.py", 'doc["question"] +', '"Please: " + doc["question"] +'),
    ("prompt.txt", "Answer.", "Reply."),
])  # fmt: skip
def test_a_changed_helper_or_file_of_the_prompt_begins_another_run(folder: Path, file: str, old: str, new: str) -> None:
    start(folder, fails_from=8)
    edit(folder, file, old, new)
    assert start(folder) == (0, list(range(DOCUMENTS)), "1.0", "")


def test_a_prompt_that_has_changed_otherwise_ends_the_start_and_names_document_and_remedy(folder: Path) -> None:
    start(folder, fails_from=8)
    code, asked, _, error = start(folder, SUFFIX=" Think first.")
    assert (code, asked) == (2, [])
    assert "task 'mine': the prompt of document 0 is another one" in error
    assert "--output_path" in error
    assert str(folder.parent / "out") in error
    assert start(folder) == (0, [8, 9, 10, 11], "1.0", "")  # nothing was lost


def test_only_documents_whose_pictures_have_changed_in_place_are_asked_again(folder: Path) -> None:
    start(folder, fails_from=8)
    paint(folder, 1, 200)  # none of those that are looked at anyway
    paint(folder, 7, 7)  # written anew, the same
    (folder / "pictures" / "3.png").unlink()  # gone: its answer stands
    assert start(folder)[:3] == (0, [1, 8, 9, 10, 11], "1.0")


def test_prompts_that_differ_each_time_are_no_reason_to_stop(folder: Path) -> None:
    edit(folder, "helper.py", "import os", "import os, time")
    edit(folder, "helper.py", 'return doc["question"]', 'return str(time.time_ns()) + doc["question"]')
    start(folder, fails_from=8)
    assert start(folder) == (0, [8, 9, 10, 11], "1.0", "")


def test_media_in_another_place_with_the_same_content_are_the_same_prompt(folder: Path) -> None:
    edit(folder, "utils.py", 'return [Image.open(HERE / doc["picture"])]', 'return [str(HERE / doc["picture"])]')
    edit(folder, "utils.py", "HERE = Path(__file__).parent", "import os; HERE = Path(__file__).parent")
    edit(folder, "utils.py", 'str(HERE / doc["picture"])', 'os.environ["PLACE"] + "/" + doc["picture"]')
    moved = folder.parent / "moved"
    start(folder, fails_from=8, PLACE=str(folder))
    (folder / "pictures").rename(moved.mkdir() or moved / "pictures")
    assert start(folder, PLACE=str(moved))[0:2] == (0, [8, 9, 10, 11])
