"""The common part of the back ends for engines in this process (vLLM, SGLang)."""
