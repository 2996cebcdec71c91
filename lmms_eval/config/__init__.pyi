"""Names of this package by their modules; see ``lmms_eval.utils.lazy``."""

from lmms_eval.config.convert import argument_text as argument_text
from lmms_eval.config.options import RunConfig as RunConfig
from lmms_eval.config.resolve import LoadedConfigs as LoadedConfigs
from lmms_eval.config.resolve import answer_options as answer_options
from lmms_eval.config.resolve import build_config as build_config
from lmms_eval.config.resolve import check_names as check_names
from lmms_eval.config.resolve import flag_parser as flag_parser
from lmms_eval.config.resolve import flags_of as flags_of
from lmms_eval.config.resolve import load_configs as load_configs
from lmms_eval.config.resolve import parse_flags as parse_flags
from lmms_eval.config.resolve import parse_options as parse_options
from lmms_eval.config.resolve import resolved_cli_args as resolved_cli_args
from lmms_eval.config.resolve import stated_options as stated_options
from lmms_eval.config.rules import check_config as check_config
