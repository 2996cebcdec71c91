"""The common part of the back ends over engines in this process (vLLM, SGLang)."""
