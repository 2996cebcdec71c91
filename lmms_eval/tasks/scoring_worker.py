"""Program of a scoring process: runs the engine's scoring loop over tasks built from their YAML."""

from lmms_eval.engine.scoring import serve
from lmms_eval.tasks import build_from_spec

if __name__ == "__main__":
    serve(build_from_spec)
