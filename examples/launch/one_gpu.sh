#!/usr/bin/env bash
# One GPU (or CPU): no launcher needed.
set -euo pipefail
lmms-eval --model hf --model_args pretrained=Qwen/Qwen2.5-VL-3B-Instruct,dtype=bfloat16 --batch_size 16 \
  --tasks megabench_core --output_path out --log_samples "$@"
