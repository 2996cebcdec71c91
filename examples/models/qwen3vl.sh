#!/usr/bin/env bash
# Qwen3-VL through transformers, dense or with experts.
set -euo pipefail
MODEL=${MODEL:-Qwen/Qwen3-VL-4B-Instruct}
python -m lmms_eval --model qwen3_vl \
  --model_args "pretrained=$MODEL,dtype=bfloat16,max_pixels=1605632,max_num_frames=32" \
  --tasks "${TASKS:-mme}" --batch_size 8 --output_path out --log_samples "$@"
