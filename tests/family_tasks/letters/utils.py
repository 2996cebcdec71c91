"""Multiple choice with lettered options, read from free answers."""

from loguru import logger as eval_logger

from lmms_eval.tasks._task_utils.mcq_extract import extract_mcq_answer
from lmms_eval.tasks._task_utils.mmmu_mcq_utils import (
    get_multi_choice_info,
    parse_jmmmu_multi_choice_response,
    parse_jmmmu_pro_multi_choice_response,
    parse_mmmu_multi_choice_response,
    parse_videommmu_multi_choice_response,
)


def process_docs(dataset):
    return dataset.filter(lambda doc: doc["split"] == "keep")


def doc_to_visual(doc):
    return []


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    lines = [f"{chr(65 + number)}. {option}" for number, option in enumerate(doc["options"])]
    return "\n".join([doc["question"], *lines]) + lmms_eval_specific_kwargs["post_prompt"]


def spoken_answer(doc):
    return f"Answer: ({doc['answer']})"


def _score(doc, letter):
    return {"accuracy": float(letter == doc["answer"])}


def process_extracted(doc, results):
    eval_logger.debug(f"{doc['id']}: {results[0]}")
    return _score(doc, extract_mcq_answer(results[0], choices=["A", "B", "C"]))


def process_mmmu(doc, results):
    index2ans, letters = get_multi_choice_info(doc["options"])
    return _score(doc, parse_mmmu_multi_choice_response(results[0], letters, index2ans))


def process_jmmmu(doc, results):
    index2ans, letters = get_multi_choice_info(doc["options"])
    return _score(doc, parse_jmmmu_multi_choice_response(results[0], letters, index2ans))


def process_jmmmu_pro(doc, results):
    _, letters = get_multi_choice_info(doc["options"])
    return _score(doc, parse_jmmmu_pro_multi_choice_response(results[0], letters))


def process_videommmu(doc, results):
    index2ans, letters = get_multi_choice_info(doc["options"])
    return _score(doc, parse_videommmu_multi_choice_response(results[0], letters, index2ans))
