#!/usr/bin/env bash
# Any server of the OpenAI chat-completions interface: vLLM, SGLang, llama.cpp, a gateway.
# OPENAI_API_KEY is sent where the server wants a key.
set -euo pipefail
MODEL=${MODEL:-Qwen/Qwen2.5-VL-7B-Instruct}
python -m lmms_eval --model openai_compatible \
  --model_args "model=$MODEL,base_url=${BASE_URL:-http://127.0.0.1:8000/v1},num_concurrent=64" \
  --tasks "${TASKS:-mme}" --output_path out --log_samples "$@"
