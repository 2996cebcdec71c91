"""Invented documents of the benchmarks that recipes name, in the columns of our tasks' data sets."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.api.task import TaskOptions
from lmms_eval.tasks import Catalogue, select_tasks
from lmms_eval.tasks.yaml.task import YamlTask
from tests.media.draw import write_video

IMAGE, IMAGES = {"_type": "Image"}, [{"_type": "Image"}]
FPS, SECONDS = 4, 6


def picture(colour: str, size: tuple[int, int] = (40, 30)) -> dict[str, Any]:
    """A stored picture."""
    from PIL import Image

    held = io.BytesIO()
    Image.new("RGB", size, colour).save(held, "PNG")
    return {"bytes": held.getvalue(), "path": None}


class Data(Struct, frozen=True):
    """The rows of a data set that some tasks read."""

    tasks: tuple[str, ...]
    folder: str
    split: str
    rows: tuple[dict[str, Any], ...]
    features: Mapping[str, Any] = {}
    """Types of the columns that hold pictures."""


@functools.cache
def invented() -> tuple[Data, ...]:
    """All data sets."""
    red, blue = picture("red"), picture("blue", (30, 40))
    numbered = {f"image_{number}": None for number in range(3, 8)}
    of_mmmu = {f"image_{number}": IMAGE for number in range(1, 8)}
    one = {"image": IMAGE}
    mmmu = (
        {"id": "validation_Art_1", "question": "Which month does <image 1> show?", "options": "['March', 'June']",
         "answer": "A", "question_type": "multiple-choice", "image_1": red, "image_2": None, **numbered},
        {"id": "validation_Art_2", "question": "Compare <image 1> with <image 2>.",
         "options": "['<image 1> is older', '<image 2> is older', 'neither is']", "answer": "B",
         "question_type": "multiple-choice", "image_1": red, "image_2": blue, **numbered},
        {"id": "validation_Art_3", "question": "Read the load of <image 1> in kN.", "options": "[]", "answer": "7.5",
         "question_type": "open", "image_1": red, "image_2": None, **numbered},
    )  # fmt: skip
    ten = str([f"{number}.5" for number in range(10)])
    question = {"question": "What is left of the lamp?", "image": red}
    lettered = {"A": "A chair", "B": "A table", "C": "A dog", "D": "nan"}
    blink = {"idx": "v", "sub_task": "x", "question": "Which is nearer?", "choices": ["the first", "the second"],
             "answer": "(A)", "prompt": "Which?\n(A) the first\n(B) the second", "image_1": red, "image_2": blue,
             "image_3": None, "image_4": None}  # fmt: skip
    videomme = {"videoID": "v1", "duration": "short", "domain": "Knowledge", "sub_category": "Law", "question_id": "1",
                "task_type": "Counting Problem", "question": "What is shown first?",
                "options": ["A. Mars.", "B. Venus.", "C. Saturn.", "D. Neptune."], "answer": "C"}  # fmt: skip
    return (
        Data(("mmmu_val",), "MMMU", "validation", mmmu, of_mmmu),
        Data(("mmmu_pro_standard", "mmmu_pro_standard_cot"), "MMMU_Pro/standard (10 options)", "test",
             ({**mmmu[0], "options": ten, "subject": "Art"}, {**mmmu[1], "options": ten, "subject": "Art"}), of_mmmu),
        Data(("mmmu_pro_vision", "mmmu_pro_vision_cot"), "MMMU_Pro/vision", "test",
             ({"id": "1", "image": red, "options": ten, "answer": "C", "subject": "Art"},), one),
        Data(("mathvision_test",), "MathVision", "test",
             ({"id": "1", "question": "How many coins touch two others?\n<image1>", "options": ["1", "2"],
               "decoded_image": red, "answer": "B", "level": 1, "subject": "counting"},
              {"id": "2", "question": "How many coins lie there?", "options": [], "decoded_image": red, "answer": "3",
               "level": 1, "subject": "counting"}), {"decoded_image": IMAGE}),
        Data(("mathvista_testmini_format",), "MathVista", "testmini",
             ({"pid": "1", "question": "What is the area?", "decoded_image": red, "choices": ["4", "6"], "unit": None,
               "precision": None, "answer": "6", "question_type": "multi_choice", "answer_type": "text",
               "metadata": {"category": "x"}, "query": "Hint: Choose.\nQuestion: The area?\nChoices:\n(A) 4\n(B) 6"},
              {"pid": "2", "question": "How many?", "decoded_image": red, "choices": None, "unit": "kg",
               "precision": None, "answer": "3", "question_type": "free_form", "answer_type": "integer",
               "metadata": {"category": "x"}, "query": None}), {"decoded_image": IMAGE}),
        Data(("realworldqa",), "RealWorldQA", "test",
             ({"image": red, "image_path": "x", "question": "Which car is near?\n\nA. The red one\nB. The white one\n"
               "Please answer directly with only the letter of the correct option and nothing else.", "answer": "A"},
              {"image": red, "image_path": "x", "question": "How many cars are there?\n"
               "Please answer directly with a single word or number.", "answer": "2"}), one),
        Data(("mmstar",), "MMStar", "val",
             ({"index": 1, "question": "What is forbidden?\nOptions: A: Parking, B: Smoking, C: 1, 2, D: Fishing.",
               "image": red, "answer": "A", "category": "math", "l2_category": "x"},), one),
        Data(("ai2d",), "ai2d", "test",
             ({"question": "Which stage is next?", "options": ["egg", "pupa"], "answer": "1", "image": red},), one),
        Data(("ai2d_no_mask",), "ai2d-no-mask", "test",
             ({"question": "Which stage is next?", "options": ["egg", "pupa"], "answer": "1", "image": red},), one),
        Data(("chartqa",), "ChartQA", "test", ({**question, "answer": "41", "type": "human_test"},), one),
        Data(("docvqa_val",), "DocVQA/DocVQA", "validation",
             ({**question, "answers": ["3 May"], "questionId": "1", "ucsf_document_id": "d"},), one),
        Data(("infovqa_val",), "DocVQA/InfographicVQA", "validation",
             ({**question, "answers": ["14"], "questionId": "1", "image_url": "u"},), one),
        Data(("textvqa_val",), "textvqa", "validation",
             ({**question, "question": "what is on the bottle?", "answers": ["ale"], "question_id": 1, "image_id": "i",
               "ocr_tokens": ["ale"]},), one),
        Data(("ocrbench",), "OCRBench", "test",
             ({**question, "question": "what is written in the image?", "answer": ["CENTRE"], "dataset": "x",
               "question_type": "Regular Text Recognition"},), one),
        Data(("hallusion_bench_image",), "HallusionBench", "image",
             ({"category": "VD", "subcategory": "chart", "visual_input": "1", "set_id": "1", "figure_id": "1",
               "question_id": "0", "question": "Is the left line longer?", "gt_answer_details": "It is.",
               "gt_answer": "1", "image": red},), one),
        Data(("pope",), "POPE", "test",
             ({"id": "1", "question_id": "1", "question": "Is there a dog in the image?", "answer": "yes",
               "image_source": "x", "category": "adversarial", "image": red},), one),
        Data(("mme",), "MME", "test",
             ({"question_id": "artwork/1.png", "image": red, "question": "Is this a bicycle? Please answer yes or no.",
               "answer": "Yes", "category": "artwork"},), one),
        Data(("mmbench_en_dev",), "MMBench/en", "dev",
             ({**question, "index": 1, "hint": "nan", "answer": "A", "category": "x", "L2-category": "x", **lettered},
              {**question, "index": 2, "hint": "It is dark.", "answer": "B", "category": "x", "L2-category": "x",
               **lettered}), one),
        Data(("mmbench_cn_dev",), "MMBench/cn", "dev",
             ({**question, "question": "图中有几只鸟？", "index": 1, "hint": "nan", "answer": "A", "category": "x",
               "L2-category": "x", "A": "一只", "B": "两只", "C": "nan", "D": "nan"},), one),
        Data(("blink_relative_depth",), "BLINK/Relative_Depth", "val", (blink,),
             {f"image_{number}": IMAGE for number in range(1, 5)}),
        Data(("muirbench",), "MUIRBENCH", "test",
             ({"idx": "1", "task": "Ordering", "question": "Which shows the place of <image>? <image>",
               "options": ["First", "Second"], "answer": "A", "image_list": [red, blue]},), {"image_list": IMAGES}),
        Data(("scienceqa_img",), "ScienceQA/ScienceQA-IMG", "test",
             ({"image": red, "question": "Which state is farthest north?", "choices": ["Maine", "Ohio"], "answer": 0,
               "hint": "Use the map.", "subject": "x", "grade": "grade4"},
              {"image": red, "question": "Which is heavier?", "choices": ["a", "b"], "answer": 0, "hint": "",
               "subject": "x", "grade": "grade4"}), one),
        Data(("seedbench",), "SEED-Bench", "test",
             ({"answer": "B", **{f"choice_{letter}": f"thing {letter}" for letter in "abcd"}, "data_id": "1",
               "data_type": "image", "question": "How many are there?", "question_id": "1", "question_type_id": 5,
               "image": [red], "segment": None},), {"image": IMAGES}),
        Data(("videomme", "videomme_w_subtitle"), "Video-MME", "test", (videomme,)),
        Data(("mvbench_action_sequence",), "MVBench/action_sequence", "train",
             ({"video": "v1.mp4", "question": "What does the cat do?", "candidates": ["jumps", "sleeps"],
               "answer": "sleeps"},)),
        Data(("mlvu_dev",), "MLVU_dev", "test",
             ({"video_name": "v1.mp4", "question": "Why does she leave?\n(A) rain\n(B) noise", "answer": "B",
               "candidates": "['rain', 'noise']", "task_type": "ego"},)),
        Data(("longvideobench_val_v",), "LongVideoBench", "validation",
             ({"video_path": "v1.mp4", "question": "What is behind him?", "correct_choice": 1, "option0": "a door",
               "option1": "a tree", "option2": "N/A", "option3": "N/A", "option4": "N/A", "duration_group": 60,
               "question_category": "S2E", "id": "1"},)),
    )  # fmt: skip


SUBTITLES = "1\n00:00:00,000 --> 00:00:01,000\nWelcome\\Nback.\n\n2\n00:00:01,000 --> 00:00:03,000\nTwo lines.\n"


def write_data(root: Path) -> Path:
    """Write all data sets in the layout of ``--data_root``, and one video under each name that a task looks up."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for data in invented():
        folder = root / data.folder
        folder.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist(list(data.rows))
        if data.features:
            known = {name: data.features.get(name, {"dtype": "string", "_type": "Value"}) for name in data.rows[0]}
            meta = {"info": {"features": known}}
            table = table.replace_schema_metadata({b"huggingface": json.dumps(meta).encode()})
        pq.write_table(table, folder / f"{data.split}-00000-of-00001.parquet")
    video = write_video(root / "v1.mp4", frames=FPS * SECONDS, fps=FPS)
    for place in ("Video-MME/data", "MVBench/media/star/Charades_segment", "MLVU_dev", "LongVideoBench/videos"):
        (root / place).mkdir(parents=True, exist_ok=True)
        (root / place / "v1.mp4").write_bytes(Path(video).read_bytes())
    (root / "Video-MME/subtitle").mkdir()
    (root / "Video-MME/subtitle/v1.srt").write_text(SUBTITLES, "utf-8")
    return root


def tasks_of(names: Sequence[str], root: Path) -> tuple[YamlTask, ...]:
    """The tasks over these data, not yet loaded."""
    selection = select_tasks(list(names), Catalogue(), TaskOptions(data_root=str(root)))
    found = tuple(task for task in selection.tasks if isinstance(task, YamlTask))
    assert len(found) == len(selection.tasks)
    return found


TASKS = tuple(task for data in invented() for task in data.tasks)
