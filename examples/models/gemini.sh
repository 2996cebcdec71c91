#!/usr/bin/env bash
# Gemini through the vendor's interface (pip install 'lmms_eval[gemini]'). BASE_URL names a gateway.
set -euo pipefail
: "${GOOGLE_API_KEY:?set the key in the environment}"
MODEL=${MODEL:-gemini-3.8-flash}
python -m lmms_eval --model gemini \
  --model_args "model_version=$MODEL,num_concurrent=16${BASE_URL:+,base_url=$BASE_URL}" \
  --tasks "${TASKS:-mme}" --output_path out --log_samples "$@"
