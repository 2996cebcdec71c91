#!/usr/bin/env bash
# InternVL in the form of transformers (the checkpoints whose names end in -hf); at most 12 tiles of a picture.
set -euo pipefail
MODEL=${MODEL:-OpenGVLab/InternVL3-8B-hf}
python -m lmms_eval --model internvl_hf --model_args "pretrained=$MODEL,dtype=bfloat16,max_patches=12" \
  --tasks "${TASKS:-mme}" --batch_size 8 --output_path out --log_samples "$@"
