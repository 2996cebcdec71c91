#!/usr/bin/env bash
# Any model that OpenRouter offers, by its name there.
set -euo pipefail
: "${OPENROUTER_API_KEY:?set the key in the environment}"
MODEL=${MODEL:-qwen/qwen2.5-vl-72b-instruct}
python -m lmms_eval --model openrouter \
  --model_args "model=$MODEL,num_concurrent=32${BASE_URL:+,base_url=$BASE_URL}" \
  --tasks "${TASKS:-mme}" --output_path out --log_samples "$@"
