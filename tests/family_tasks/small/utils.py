"""Small helpers of the family: each task scores with some of them."""

import os

from lmms_eval import utils as family_utils
from lmms_eval.api.metrics import anls, levenshtein_distance
from lmms_eval.api.registry import MODEL_REGISTRY
from lmms_eval.azure_openai_compat import build_client, has_endpoint_support
from lmms_eval.imports import is_package_available, make_lazy_getattr, optional_import, require_package
from lmms_eval.loggers.evaluation_tracker import GeneralConfigTracker
from lmms_eval.tasks._task_utils.default_template_yaml import load_default_template_yaml
from lmms_eval.tasks._task_utils.media_resolver import resolve_media_reference
from lmms_eval.tasks._task_utils.point_format import parse_point2d
from lmms_eval.tasks._task_utils.video_loader import get_cache_dir, get_video
from lmms_eval.tasks._task_utils.vqa_eval_metric import EvalAIAnswerProcessor
from lmms_eval.utils import (
    create_iterator,
    eval_logger,
    get_file_datetime,
    get_file_task_name,
    get_latest_filename,
    get_results_filenames,
    get_sample_results_filenames,
    handle_arg_string,
    hash_string,
    is_json,
    resolve_cache_dir,
)

CONFIG = load_default_template_yaml(__file__)
RESULTS = "20250101_1200_results.json"
SAMPLES = "out/samples_ocr_20250102.jsonl"
require_package("numpy", feature="the small helpers")
normalise = EvalAIAnswerProcessor()


def doc_to_visual(doc):
    return []


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    kwargs = lmms_eval_specific_kwargs or {}
    return f"{kwargs.get('pre_prompt', '')}{doc['question']}{kwargs.get('post_prompt', '')}"


def doc_to_picture(doc):
    return [
        resolve_media_reference("dot.png", media_type="image", env_vars=["FAMILY_MEDIA"], extra_subdirs=("pictures",))
    ]


def process_template(doc, results):
    is_read = CONFIG["test_split"] == "test" and "doc_to_visual" not in CONFIG
    return {"score": float(is_read and results[0] == doc["answer"])}


def process_video(doc, results):
    folder = get_cache_dir(CONFIG)
    video = get_video(folder, "clip")
    same = resolve_cache_dir("$HF_HOME/family_clips/videos") == folder
    return {"score": float(same and video == os.path.join(folder, "clip.MP4") and results[0] == doc["answer"])}


def process_media(doc, results):
    path = resolve_media_reference("dot.png", media_type="image", env_vars=["FAMILY_MEDIA"])
    return {"score": float(os.path.isfile(path) and results[0] == doc["answer"])}


def process_files(doc, results):
    latest = get_latest_filename(["a_1.jsonl", SAMPLES])
    named = get_file_task_name("samples_ocr_1.jsonl") == "ocr" and get_file_datetime(latest) == "20250102"
    found = get_results_filenames([RESULTS, SAMPLES]) == [RESULTS]
    kept = get_sample_results_filenames([RESULTS, SAMPLES]) == [SAMPLES]
    return {"score": float(named and found and kept and results[0] == doc["answer"])}


def process_texts(doc, results):
    eval_logger.debug(f"read {results[0]}")
    known = is_json("{}") and family_utils.is_json(str(handle_arg_string("42")))
    return {"score": float(known and hash_string(results[0]) == hash_string(doc["answer"]))}


def process_shares(doc, results):
    mine = list(create_iterator(range(10), rank=1, world_size=4))
    return {"score": float(mine == [1, 5, 9] and results[0] == doc["answer"])}


def process_distance(doc, results):
    near = levenshtein_distance(results[0], doc["answer"]) == 0
    return {"score": anls([doc["answer"]], [results[0]])["anls"] if near else 0.0}


def process_tracker(doc, results):
    name = GeneralConfigTracker._get_model_name("pretrained=org/model,batch_size=1")
    return {"score": float(name == "org/model" and results[0] == doc["answer"])}


def process_packages(doc, results):
    module, is_there = optional_import("json", "dumps", fallback=str)
    nothing, is_lost = optional_import("package_of_nobody", fallback=None)
    lazily = make_lazy_getattr({"sqrt": ("math", "sqrt")})
    right = is_there and not is_lost and nothing is None and lazily("sqrt")(4) == 2 and is_package_available("json")
    return {"score": float(right and module(results[0]) == module(doc["answer"]))}


def process_registry(doc, results):
    return {"score": float(isinstance(MODEL_REGISTRY, dict) and results[0] == doc["answer"])}


def process_azure(doc, results):
    if not has_endpoint_support():
        return {"score": 0.0}
    client, deployment = build_client("judge")
    client.close()
    return {"score": float(deployment == "judge" and results[0] == doc["answer"])}


def point_gold(doc):
    return "The point is (500, 0.5)."


def process_points(doc, results):
    (point,) = parse_point2d(results[0] or "(0, 0)", 640, 480)
    return {"score": float(tuple(point) == (320000, 240))}


def process_vqa(doc, results):
    return {"score": float(normalise(results[0]) == normalise(f"The {doc['answer']}."))}
