"""Speech: word error rates over all documents."""

from lmms_eval.tasks.asr_wer_utils import EvaluationTokenizer, compute_wer, remove_sp, zhconv_convert

tokenizer = EvaluationTokenizer(tokenizer_type="13a", lowercase=True, punctuation_removal=True)


def doc_to_visual(doc):
    return []


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    kwargs = lmms_eval_specific_kwargs or {}
    return f"{kwargs.get('pre_prompt', '')}{doc['question']}{kwargs.get('post_prompt', '')}"


def process_pairs(doc, results):
    return {"wer": {"gt": remove_sp("<|en|>" + doc["answer"], "en"), "pred": remove_sp(results[0], "en")}}


def word_error_rate(items):
    rate = compute_wer([item["gt"] for item in items], [item["pred"] for item in items], "en", english_languages=["en"])
    return 100 * rate


def process_tokens(doc, results):
    return {"score": float(tokenizer.tokenize(results[0]) == tokenizer.tokenize(doc["answer"]))}


def process_chinese(doc, results):
    return {"score": float(zhconv_convert(results[0], "zh-cn") == zhconv_convert(doc["answer"], "zh-cn"))}
