"""InternVL as a judge: checkpoints with code of their own (``chat``), or in the form of transformers."""
