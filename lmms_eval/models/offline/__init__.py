"""What the back ends over engines in this process (vLLM, SGLang) share."""
