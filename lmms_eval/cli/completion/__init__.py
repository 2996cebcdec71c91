"""Completion of command lines by the shell: ``lmms-eval completion bash|zsh|fish``."""
