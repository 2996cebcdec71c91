#!/usr/bin/env bash
# A model that is larger than one GPU, through transformers: its layers are spread over all GPUs of the machine.
# Where vLLM has the architecture, vllm_qwen3vl.sh with TP=8 is faster: its engine splits each layer.
set -euo pipefail
MODEL=${MODEL:-Qwen/Qwen2.5-VL-72B-Instruct}
python -m lmms_eval --model qwen2_5_vl --model_args "pretrained=$MODEL,dtype=bfloat16,device_map=${DEVICE_MAP:-auto}" \
  --tasks "${TASKS:-mme}" --batch_size 4 --output_path out --log_samples "$@"
