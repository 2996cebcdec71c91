"""``lmms-eval check``: tries tasks and models on a few documents, without a network, in processes of their own."""
