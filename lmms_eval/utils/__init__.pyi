"""Names of this package by their modules; see ``lmms_eval.utils.lazy``."""

from lmms_eval.results.family_table import make_table as make_table  # task files import it from here
from lmms_eval.utils.arguments import parse_seed_list as parse_seed_list
from lmms_eval.utils.arguments import simple_parse_args_string as simple_parse_args_string
from lmms_eval.utils.collator import Collator as Collator
from lmms_eval.utils.collator import Grouper as Grouper
from lmms_eval.utils.collator import Reorderer as Reorderer
from lmms_eval.utils.collator import chunks as chunks
from lmms_eval.utils.concurrency import AdaptiveConfig as AdaptiveConfig
from lmms_eval.utils.concurrency import Decision as Decision
from lmms_eval.utils.concurrency import Window as Window
from lmms_eval.utils.concurrency import decide as decide
from lmms_eval.utils.concurrency import extract_text_prefix as extract_text_prefix
from lmms_eval.utils.concurrency import is_rate_limit_error as is_rate_limit_error
from lmms_eval.utils.concurrency import make_prefix_hash as make_prefix_hash
from lmms_eval.utils.concurrency import parse_bool as parse_bool
from lmms_eval.utils.concurrency import requests_before_decision as requests_before_decision
from lmms_eval.utils.markdown import Column as Column
from lmms_eval.utils.markdown import markdown_table as markdown_table
from lmms_eval.utils.names import baseline_display_name as baseline_display_name
from lmms_eval.utils.names import get_sample_size as get_sample_size
from lmms_eval.utils.names import model_name_from_args as model_name_from_args
from lmms_eval.utils.names import pattern_match as pattern_match
from lmms_eval.utils.names import sanitize_long_string as sanitize_long_string
from lmms_eval.utils.names import sanitize_model_name as sanitize_model_name
from lmms_eval.utils.names import sanitize_task_name as sanitize_task_name
from lmms_eval.utils.names import shard_indices as shard_indices
from lmms_eval.utils.redaction import is_secret_key as is_secret_key
from lmms_eval.utils.redaction import redact as redact
from lmms_eval.utils.redaction import redact_text as redact_text
from lmms_eval.utils.template import apply_template as apply_template
from lmms_eval.utils.template import regex_replace as regex_replace
from lmms_eval.utils.torch_helpers import get_dtype as get_dtype
from lmms_eval.utils.torch_helpers import stop_sequences_criteria as stop_sequences_criteria
