"""The rules of lm-eval's task files: prompts, stop texts, values and errors of tasks in its packs (``docs/packs.md``).

They differ from this package's own rules for YAML tasks and hold for the tasks of a pack only.
"""
