"""The program of a scoring process: the engine's loop over tasks that are built from their YAML."""

from lmms_eval.engine.scoring import serve
from lmms_eval.tasks import build_from_spec

if __name__ == "__main__":
    serve(build_from_spec)
