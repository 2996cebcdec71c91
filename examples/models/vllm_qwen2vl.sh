#!/usr/bin/env bash
# Qwen2-VL in vLLM's engine, in this process: a GPU for each of TP, times DP copies.
set -euo pipefail
MODEL=${MODEL:-Qwen/Qwen2-VL-7B-Instruct}
python -m lmms_eval --model vllm \
  --model_args "model=$MODEL,tensor_parallel_size=${TP:-1},data_parallel_size=${DP:-1},max_model_len=32768" \
  --tasks "${TASKS:-mme}" --output_path out --log_samples "$@"
