#!/usr/bin/env bash
# Qwen3.5 in vLLM's engine. It thinks first: answers need room. --reasoning_tags (on by default) takes the thoughts out before
# scoring; reasoning_parser tells the engine where they end.
set -euo pipefail
MODEL=${MODEL:-Qwen/Qwen3.5-9B}
ARGS="model=$MODEL,tensor_parallel_size=${TP:-1},data_parallel_size=${DP:-1},max_model_len=131072"
ARGS="$ARGS,reasoning_parser=qwen3,chat_template_kwargs={\"enable_thinking\": true}"
python -m lmms_eval --model vllm --model_args "$ARGS" --gen_kwargs max_new_tokens=32768,temperature=0.6,top_p=0.95 \
  --tasks "${TASKS:-mme}" --output_path out --log_samples "$@"
