"""Reasoning variants, at the family's import path."""

from lmms_eval.compat.loose_choices import parse_mcq as parse_mcq
from lmms_eval.compat.loose_choices import relax_exact_match as relax_exact_match
from lmms_eval.compat.reasoning import acc_reward as acc_reward
from lmms_eval.compat.reasoning import compute_score as compute_score
from lmms_eval.compat.reasoning import extract_anwser_tag as extract_anwser_tag
from lmms_eval.compat.reasoning import extract_boxed_answer as extract_boxed_answer
from lmms_eval.compat.reasoning import format_reward as format_reward
from lmms_eval.compat.reasoning import make_reasoning_doc_to_messages as make_reasoning_doc_to_messages
from lmms_eval.compat.reasoning import make_reasoning_process_results as make_reasoning_process_results
from lmms_eval.compat.reasoning import simple_parse as simple_parse
