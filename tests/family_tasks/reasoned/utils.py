"""Answers with a reasoning part before them."""

from lmms_eval.tasks._task_utils.math_verify_utils import MathVerifyFn
from lmms_eval.tasks._task_utils.reasoning_utils import (
    acc_reward,
    compute_score,
    extract_anwser_tag,
    extract_boxed_answer,
    format_reward,
    make_reasoning_doc_to_messages,
    make_reasoning_process_results,
    parse_mcq,
    relax_exact_match,
    simple_parse,
)

verify = MathVerifyFn(timeout_seconds=5)


def doc_to_visual(doc):
    return []


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    kwargs = lmms_eval_specific_kwargs or {}
    return f"{kwargs.get('pre_prompt', '')}{doc['question']}{kwargs.get('post_prompt', '')}"


def reasoned(doc):
    return f"<analysis>Let me see.</analysis><answer>{doc['answer']}</answer>"


def boxed(doc):
    return f"Therefore \\boxed{{{doc['answer']}}}"


doc_to_messages = make_reasoning_doc_to_messages(doc_to_visual, doc_to_text)
process_made = make_reasoning_process_results("family", doc_to_text)


def process_scored(doc, results):
    return {"score": compute_score("family", results[0], doc["answer"])["score"]}


def process_boxed(doc, results):
    return {"score": float(extract_boxed_answer(results[0]) == doc["answer"])}


def process_tags(doc, results):
    return {"score": float(simple_parse(extract_anwser_tag(results[0]) + ".") == doc["answer"])}


def process_form(doc, results):
    return {"score": format_reward(results[0])}


def process_loose(doc, results):
    same = parse_mcq(results[0]) == parse_mcq(doc["answer"])
    return {"score": relax_exact_match(results[0], doc["answer"]) if same else 0.0}


def process_accepted(doc, results):
    return {"score": acc_reward(results[0], doc["answer"], {"question": doc["question"]})}


def process_math(doc, results):
    score, _ = verify(results[0], doc["answer"])
    return {"score": score}
