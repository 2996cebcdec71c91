"""Names of this module by their modules; see ``lmms_eval.utils.lazy``."""

from lmms_eval.compat.samplers import ContextSampler as ContextSampler
from lmms_eval.compat.samplers import FirstNSampler as FirstNSampler
from lmms_eval.compat.samplers import get_sampler as get_sampler
