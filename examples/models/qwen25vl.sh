#!/usr/bin/env bash
# Qwen2.5-VL through transformers. Pictures keep their own resolution between min_pixels and max_pixels.
set -euo pipefail
MODEL=${MODEL:-Qwen/Qwen2.5-VL-3B-Instruct}
python -m lmms_eval --model qwen2_5_vl \
  --model_args "pretrained=$MODEL,dtype=bfloat16,max_pixels=1605632,attn_implementation=sdpa" \
  --tasks "${TASKS:-mme}" --batch_size 8 --output_path out --log_samples "$@"
