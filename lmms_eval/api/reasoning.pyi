"""Names of this module by their modules; see ``lmms_eval.utils.lazy``."""

from lmms_eval.filters.reasoning import parse_reasoning_tags_config as parse_reasoning_tags_config
from lmms_eval.filters.reasoning import strip_reasoning_tags as strip_reasoning_tags
