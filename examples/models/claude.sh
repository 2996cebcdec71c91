#!/usr/bin/env bash
# Claude through the vendor's interface (pip install 'lmms_eval[anthropic]'). BASE_URL names a gateway.
set -euo pipefail
: "${ANTHROPIC_API_KEY:?set the key in the environment}"
MODEL=${MODEL:-claude-sonnet-4-6}
python -m lmms_eval --model claude \
  --model_args "model_version=$MODEL,num_concurrent=16${BASE_URL:+,base_url=$BASE_URL}" \
  --tasks "${TASKS:-mme}" --output_path out --log_samples "$@"
