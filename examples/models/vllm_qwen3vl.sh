#!/usr/bin/env bash
# Qwen3-VL in vLLM's engine. The fewer pictures a prompt may hold, the more memory is left for requests at a time:
# set IMAGES to what the tasks need.
set -euo pipefail
MODEL=${MODEL:-Qwen/Qwen3-VL-8B-Instruct}
ARGS="model=$MODEL,tensor_parallel_size=${TP:-1},data_parallel_size=${DP:-1},max_model_len=65536"
ARGS="$ARGS,limit_mm_per_prompt={\"image\": ${IMAGES:-16}, \"video\": 1},max_frames_num=32"
python -m lmms_eval --model vllm --model_args "$ARGS" \
  --tasks "${TASKS:-mme}" --output_path out --log_samples "$@"
