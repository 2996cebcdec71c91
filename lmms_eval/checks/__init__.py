"""``lmms-eval check``: tasks and models tried on their first documents, without network, in processes of their own."""
