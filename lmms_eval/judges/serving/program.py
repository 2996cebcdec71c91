"""Runs a module as ``python -m`` does, and passes a key without putting it on the command line, which is public."""

from __future__ import annotations

import os
import runpy
import sys

KEY = "LMMS_EVAL_SERVING_KEY"


def main(arguments: list[str]) -> None:
    """Run the module. ``arguments``: how the key is passed, the module, and its arguments."""
    way, module, *rest = arguments
    key = os.environ.pop(KEY, "")
    kind, _, name = way.partition(":")
    if kind == "env":
        os.environ[name] = key
    elif way:
        rest += [way, key]
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
