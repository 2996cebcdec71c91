#!/usr/bin/env bash
# Any vision-language model in SGLang's engine, in this process.
set -euo pipefail
MODEL=${MODEL:-Qwen/Qwen2.5-VL-7B-Instruct}
python -m lmms_eval --model sglang \
  --model_args "model=$MODEL,tensor_parallel_size=${TP:-1},data_parallel_size=${DP:-1},context_length=32768" \
  --tasks "${TASKS:-mme}" --output_path out --log_samples "$@"
