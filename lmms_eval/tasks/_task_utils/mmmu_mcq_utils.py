"""Option letters in answers to MMMU and its relatives, at the family's path."""

from __future__ import annotations

from lmms_eval.compat.mmmu_answers import get_multi_choice_info as get_multi_choice_info
from lmms_eval.compat.mmmu_answers import parse_jmmmu_multi_choice_response as parse_jmmmu_multi_choice_response
from lmms_eval.compat.mmmu_answers import parse_jmmmu_pro_multi_choice_response as parse_jmmmu_pro_multi_choice_response
from lmms_eval.compat.mmmu_answers import parse_mmmu_multi_choice_response as parse_mmmu_multi_choice_response
from lmms_eval.compat.mmmu_answers import parse_videommmu_multi_choice_response as parse_videommmu_multi_choice_response
