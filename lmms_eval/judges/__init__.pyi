"""Names of this package by their modules; see ``lmms_eval.utils.lazy``."""

from lmms_eval.judges.driver import ask as ask
from lmms_eval.judges.options import DEFAULT_JUDGE_MODEL as DEFAULT_JUDGE_MODEL
from lmms_eval.judges.options import JudgeOptions as JudgeOptions
from lmms_eval.judges.providers import Judge as Judge
from lmms_eval.judges.providers import open_judge as open_judge
from lmms_eval.judges.providers import register_script as register_script
