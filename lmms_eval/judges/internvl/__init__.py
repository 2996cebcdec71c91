"""InternVL as a judge: checkpoints with their own code (``chat``), or in the format of transformers."""
