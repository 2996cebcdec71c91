"""The metrics of MEGA-Bench by name. Their modules are imported when first used."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.megabench.metrics.values import MetricValue, OutsideData

Metric = Callable[..., MetricValue]
"""Computes the score from the response and the truth (or evaluation context); judged metrics also get the verdict."""
Need = Literal["a judge model", "the code sandbox", "linguistic data", "a geocoder"]

SANDBOX: Need = "the code sandbox"
LINGUISTIC_DATA: Need = "linguistic data"
_PACKAGE = "lmms_eval.tasks.megabench.metrics"


class MetricSpec(Struct, frozen=True):
    """A metric: its function and the arguments that it takes."""

    name: str
    path: str = ""
    """``module.function`` below this package; empty if there is no function."""
    needs_context: bool = False
    """Whether it gets the sample's evaluation context instead of the truth."""
    needs: Need | None = None
    """A need outside this package; without a function the metric is not evaluated."""
    judged: bool = False
    """Whether a judge scores it, which makes its task an ``llm`` task."""
    reads_text: bool = False
    """Whether it takes the bare reply of the ``dummy`` parser; other metrics need a value by field."""
    gives_info: bool = False
    """Whether it returns a ``DetailedScore``; an error text becomes the information."""
    library: str = ""
    """A library that takes about a second to load, and milliseconds to score a query."""
    fixed: str = ""
    """``module.function`` of the variant without the official one's faults (scoring rules §3); empty: no such fault."""

    def load(self, data: OutsideData | None = None) -> Metric:
        """Return the function, bound to ``data`` if it needs some.

        Raises ``NotEvaluated`` if something that it needs is missing.
        """
        if not self.path:
            raise NotEvaluated(f"{self.name} needs {self.needs}")
        function = _load(self.path)
        if data is not None and self.needs in (LINGUISTIC_DATA, "a geocoder"):
            return functools.partial(function, data=data)
        return function

    def load_fixed(self, data: OutsideData | None = None) -> Metric:
        """Return the repaired variant if it exists, else the function itself."""
        return _load(self.fixed) if self.fixed else self.load(data)


@functools.cache
def _load(path: str) -> Metric:
    module, _, name = path.rpartition(".")
    function: Metric = getattr(import_module(f"{_PACKAGE}.{module}"), name)
    return function


_BY_MODULE = {
    "strings": (
        "exact_str_match",
        "simple_str_match",
        "exact_str_match_case_insensitive",
        "code_result_exact_str_match",
        "multi_ref_phrase",
        "normalized_similarity_damerau_levenshtein",
        "near_str_match",
    ),
    "translation": ("bleu", "gleu_cn"),
    "numbers": (
        "number_rel_diff_ratio",
        "positive_int_match",
        "normalized_rmse",
        "angle_seq_float_rmse",
        "general_single_numerical_match",
        "boxed_single_numerical_match",
    ),
    "latex": ("latex_expr_equality", "text_with_latex_expr_equality"),
    "sequences": (
        "set_equality",
        "set_equality_case_insensitive",
        "str_set_equality_comma",
        "str_set_equality_line_break",
        "jaccard_index",
        "jaccard_index_case_insensitive",
        "set_precision",
        "chess_move_list_jaccard_index",
        "sequence_equality",
        "sequence_equality_case_insensitive",
        "sequence_accuracy_case_insensitive",
        "longest_common_list_prefix_ratio",
    ),
    "dicts": (
        "nbbox_iou_tuple",
        "nbbox_iou_single",
        "nbbox_iou_sequence",
        "xml_nbbox_iou_single",
        "dict_equality",
        "dict_precision",
        "dict_exact_str_match_agg_recall",
        "dict_set_equality_agg_jaccard",
        "dict_jaccard_agg_jaccard",
        "dict_nbbox_iou_tuple_agg_jaccard",
    ),
    "coordinates": ("xml_norm_point_distance", "sequence_coords_similarity"),
    "values": ("nli_entailment", "unsupported"),
}

_REPAIRED = frozenset(
    {
        "positive_int_match", "general_single_numerical_match", "boxed_single_numerical_match", "set_equality",
        "set_equality_case_insensitive", "str_set_equality_comma", "set_precision", "jaccard_index",
        "jaccard_index_case_insensitive",
    }
)  # fmt: skip
"""Metrics with a variant ``NAME_fixed`` in their module."""

_WITH_LATEX = frozenset(
    {
        "latex_expr_equality", "text_with_latex_expr_equality", "general_single_numerical_match",
        "boxed_single_numerical_match",
    }
)  # fmt: skip
"""Metrics that read LaTeX, with sympy."""

_SPECIAL = (
    MetricSpec(
        "symbolic_planning_test",
        "planning.symbolic_planning_test",
        needs_context=True,
        fixed="planning.symbolic_planning_test_fixed",
    ),
    MetricSpec("xml_norm_point_in_bbox", "coordinates.xml_norm_point_in_bbox", needs_context=True, gives_info=True),
    MetricSpec(
        "constrained_generation",
        "constrained.constrained_generation",
        needs_context=True,
        needs=LINGUISTIC_DATA,
        library="nltk",
        reads_text=True,
        gives_info=True,
    ),
    MetricSpec(
        "program_judge",
        "code.program_judge",
        needs_context=True,
        needs=SANDBOX,
        fixed="code.program_judge_fixed",
    ),
    MetricSpec(
        "gpt_4o_as_judge",
        "judged.gpt_4o_as_judge",
        needs="a judge model",
        judged=True,
        reads_text=True,
        gives_info=True,
    ),
    MetricSpec("ascii_art_gpt4o_judge", "judged.ascii_art_gpt4o_judge", needs="a judge model", judged=True),
    MetricSpec("geo_proximity_location_dict", "geography.geo_proximity_location_dict", needs="a geocoder"),
)

METRICS: Mapping[str, MetricSpec] = MappingProxyType(
    {
        name: MetricSpec(
            name,
            f"{module}.{name}",
            library="sympy" if name in _WITH_LATEX else "",
            fixed=f"{module}.{name}_fixed" if name in _REPAIRED else "",
        )
        for module, names in _BY_MODULE.items()
        for name in names
    }
    | {spec.name: spec for spec in _SPECIAL}
)
"""Metrics by lower-case name."""

UNSUPPORTED = "unsupported"
