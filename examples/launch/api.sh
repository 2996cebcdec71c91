#!/usr/bin/env bash
# Any OpenAI-compatible server: one process keeps it busy. num_concurrent is the ceiling; it adapts below it.
set -euo pipefail
: "${OPENAI_API_KEY:?set the key in the environment}"
lmms-eval --model openai --model_args model=gpt-4o-mini,num_concurrent=64 \
  --tasks megabench_core_si --output_path out --log_samples "$@"
