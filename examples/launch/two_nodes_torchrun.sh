#!/usr/bin/env bash
# Two machines with eight GPUs each. Start on both, with NODE_RANK=0 on the first and NODE_RANK=1 on the second;
# MASTER_ADDR is the first one's address. The folder may be shared or not: results come together on the first machine.
set -euo pipefail
torchrun --nnodes 2 --node_rank "${NODE_RANK:?0 or 1}" --nproc_per_node 8 \
  --master_addr "${MASTER_ADDR:?address of the first machine}" --master_port "${MASTER_PORT:-29500}" -m lmms_eval \
  --model hf --model_args pretrained=Qwen/Qwen2.5-VL-3B-Instruct,dtype=bfloat16 --batch_size 16 \
  --tasks megabench_core --output_path out --log_samples "$@"
