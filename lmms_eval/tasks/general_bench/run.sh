#!/usr/bin/env bash
# Predictions (1), scores (2) and levels (3) of a model: lmms-eval general-bench run under the name its users know.
#   run.sh --step 123 --model NAME --model_args K=V,... --dataset DIR --name NAME
set -euo pipefail
exec "${PYTHON:-python}" -m lmms_eval general-bench run "$@"
