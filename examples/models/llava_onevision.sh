#!/usr/bin/env bash
# LLaVA-OneVision in the form of transformers (the checkpoints whose names end in -hf).
set -euo pipefail
MODEL=${MODEL:-llava-hf/llava-onevision-qwen2-7b-ov-hf}
python -m lmms_eval --model llava_onevision --model_args "pretrained=$MODEL,dtype=bfloat16,max_frames_num=32" \
  --tasks "${TASKS:-mme}" --batch_size 4 --output_path out --log_samples "$@"
