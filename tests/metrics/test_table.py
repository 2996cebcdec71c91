from __future__ import annotations

import subprocess
import sys

from lmms_eval.metrics import AGGREGATIONS, METRICS
from lmms_eval.stats import NAMED_STATISTICS
from tests.cases import for_each


@for_each("name", sorted(METRICS))
def test_every_metric_has_its_functions_and_aggregation(name: str) -> None:
    entry = METRICS[name]
    assert entry.aggregation in AGGREGATIONS
    assert all(callable(entry.function(output_type)) for output_type in entry.output_types)
    assert entry.function("no such type") is None


@for_each("name", sorted(AGGREGATIONS))
def test_every_aggregation_can_be_imported(name: str) -> None:
    entry = AGGREGATIONS[name]
    assert callable(entry.function())
    assert entry.bootstrap_name is None or (entry.bootstrap_name in NAMED_STATISTICS and entry.bootstrap_iterations)


def test_the_registered_names_are_those_of_the_family() -> None:
    assert set(METRICS) >= {
        "acc", "acc_norm", "acc_mutual_info", "acc_all", "exact_match", "anls", "perplexity", "word_perplexity",
        "byte_perplexity", "bits_per_byte", "brier_score", "mcc", "f1", "bleu", "chrf", "ter", "bypass",
    }  # fmt: skip
    lower = {name for name, entry in METRICS.items() if not entry.higher_is_better}
    assert lower == {"bits_per_byte", "brier_score", "byte_perplexity", "perplexity", "ter", "wer", "word_perplexity"}


def test_the_tables_import_nothing_heavy() -> None:
    code = (
        "import sys, lmms_eval.metrics, lmms_eval.stats, lmms_eval.filters, lmms_eval.utils\n"
        "heavy = {'numpy', 'torch', 'transformers', 'sacrebleu', 'jinja2', 'rapidfuzz', 'pandas'} & set(sys.modules)\n"
        "sys.exit(str(sorted(heavy)) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
