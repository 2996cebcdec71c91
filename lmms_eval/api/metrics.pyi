"""Names of this module by their modules; see ``lmms_eval.utils.lazy``."""

from lmms_eval.metrics.text import anls as anls
from lmms_eval.metrics.text import levenshtein_distance as levenshtein_distance
