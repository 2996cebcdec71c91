"""Make the demonstration data of ``general_bench_demo``: ``python examples/make_general_bench_demo.py [FOLDER]``.

The layout is that of the published open set (``nlp/TASK/annotation.json``, ``image/comprehension/TASK/...``), but with
three items per task, and every text, picture, sound and point is our own. Tasks with files as answers come with a
``prediction.json`` and the files of an imagined generator. The same call writes the same bytes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from general_bench_demo_language import LANGUAGE
from general_bench_demo_media import MEDIA, Folder

from lmms_eval.tasks.general_bench.facts import find_task

DEFAULT_FOLDER = Path(__file__).parents[1] / "lmms_eval" / "tasks" / "general_bench" / "demo"
SET = "General-Bench-Openset"


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def make(target: Path) -> list[str]:
    """Write the data set below ``target`` and return the ids of its tasks."""
    root = target / SET
    for language in LANGUAGE:
        items = [{"id": f"q{number}", **item} for number, item in enumerate(language.items)]
        content = {"task": language.task, "type": language.type, "source": "made for the demonstration", "data": items}
        write_json(root / "nlp" / language.folder / "annotation.json", content)
    for media in MEDIA:
        folder = Folder(root / media.place, media.task)
        media.write(folder)
        paradigm = media.place.split("/")[1]
        write_json(folder.path / "annotation.json", {"task": media.task, "type": paradigm, "data": folder.items})
        made = [{"id": n, "prediction": one} for n, one in enumerate(folder.predictions) if one is not None]
        if made:
            write_json(folder.path / "prediction.json", made)
    return [find_task(one.task).id for one in (*LANGUAGE, *MEDIA)]


def write_table(ids: list[str], target: Path) -> None:
    """Write the table of tasks that the YAML file of the demonstration reads."""
    names = Path(find_task.__code__.co_filename).with_name("tasks.tsv")
    head, *rows = names.read_text(encoding="utf-8").splitlines()
    place = head.split("\t").index("id")
    chosen = [row for row in rows if row.split("\t")[place] in ids]
    (target / "tasks.tsv").write_text("\n".join([head, *chosen]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER
    made_ids = make(folder)
    if len(sys.argv) == 1:
        write_table(made_ids, folder)
    print(f"{len(made_ids)} tasks in {folder / SET}")
