"""The language tasks: their types, their items, and the reference's scorer."""
