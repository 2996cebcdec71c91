"""Uncertainty, comparison and power: pure functions. Numpy and scipy are imported inside functions only."""

from lmms_eval.stats.agreement import cosine, krippendorff_alpha, pearson, weighted_kappa
from lmms_eval.stats.bootstrap import NAMED_STATISTICS, bootstrap_interval, bootstrap_stderr
from lmms_eval.stats.calibration import CorrectedMean, HumanAgreement, corrected_mean, human_agreement
from lmms_eval.stats.error import (
    ItemErrors,
    clustered_stderr,
    item_errors,
    item_number,
    mean_stderr,
    pop_stddev,
    sample_stddev,
)
from lmms_eval.stats.group import (
    aggregate_subtask_metrics,
    combined_sample_stderr,
    pooled_sample_stderr,
    unweighted_group_stderr,
)
from lmms_eval.stats.interval import (
    ANY_NUMBER,
    MANY,
    Interval,
    NoInterval,
    Spread,
    quantile,
    score_interval,
)
from lmms_eval.stats.paired import PairedResult, paired_ttest
from lmms_eval.stats.power import PowerQuestion, PowerResult, power_analysis
from lmms_eval.stats.sequence import Sampled, StratifiedSampled
from lmms_eval.stats.stability import (
    Stability,
    consensus_accuracy,
    consistency_rate,
    expected_accuracy,
    internal_variance,
    stability,
)
from lmms_eval.stats.student import t_cdf, t_ppf, two_sided_p

__all__ = [
    "ANY_NUMBER",
    "MANY",
    "NAMED_STATISTICS",
    "CorrectedMean",
    "HumanAgreement",
    "Interval",
    "ItemErrors",
    "NoInterval",
    "PairedResult",
    "PowerQuestion",
    "PowerResult",
    "Sampled",
    "Spread",
    "Stability",
    "StratifiedSampled",
    "aggregate_subtask_metrics",
    "bootstrap_interval",
    "bootstrap_stderr",
    "clustered_stderr",
    "combined_sample_stderr",
    "consensus_accuracy",
    "consistency_rate",
    "corrected_mean",
    "cosine",
    "expected_accuracy",
    "human_agreement",
    "internal_variance",
    "item_errors",
    "item_number",
    "krippendorff_alpha",
    "mean_stderr",
    "paired_ttest",
    "pearson",
    "pooled_sample_stderr",
    "pop_stddev",
    "power_analysis",
    "quantile",
    "sample_stddev",
    "score_interval",
    "stability",
    "t_cdf",
    "t_ppf",
    "two_sided_p",
    "unweighted_group_stderr",
    "weighted_kappa",
]
