#!/usr/bin/env bash
# Eight GPUs of one machine: a process for each; documents are taken in blocks, costliest first.
set -euo pipefail
accelerate launch --multi_gpu --num_processes 8 -m lmms_eval \
  --model hf --model_args pretrained=Qwen/Qwen2.5-VL-3B-Instruct,dtype=bfloat16 --batch_size 16 \
  --tasks megabench_core --output_path out --log_samples "$@"
