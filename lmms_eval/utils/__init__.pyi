"""Names of this package by their modules; see ``lmms_eval.utils.lazy``."""

from lmms_eval.compat.helpers import Collator as Collator
from lmms_eval.compat.helpers import Grouper as Grouper
from lmms_eval.compat.helpers import Reorderer as Reorderer
from lmms_eval.compat.helpers import chunks as chunks
from lmms_eval.compat.helpers import create_iterator as create_iterator
from lmms_eval.compat.helpers import eval_logger as eval_logger
from lmms_eval.compat.helpers import get_dtype as get_dtype
from lmms_eval.compat.helpers import get_file_datetime as get_file_datetime
from lmms_eval.compat.helpers import get_file_task_name as get_file_task_name
from lmms_eval.compat.helpers import get_latest_filename as get_latest_filename
from lmms_eval.compat.helpers import get_results_filenames as get_results_filenames
from lmms_eval.compat.helpers import get_sample_results_filenames as get_sample_results_filenames
from lmms_eval.compat.helpers import handle_non_serializable as handle_non_serializable
from lmms_eval.compat.helpers import hash_string as hash_string
from lmms_eval.compat.helpers import is_json as is_json
from lmms_eval.compat.helpers import stop_sequences_criteria as stop_sequences_criteria
from lmms_eval.compat.media import resolve_cache_dir as resolve_cache_dir
from lmms_eval.results.tables import make_table as make_table  # task files import it from here
from lmms_eval.utils.arguments import handle_arg_string as handle_arg_string
from lmms_eval.utils.arguments import parse_seed_list as parse_seed_list
from lmms_eval.utils.arguments import simple_parse_args_string as simple_parse_args_string
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
from lmms_eval.utils.terminal import Column as Column
from lmms_eval.utils.terminal import markdown_table as markdown_table
