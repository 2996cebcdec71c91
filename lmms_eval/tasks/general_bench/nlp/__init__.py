"""The language tasks: their types, what their items hold, and the reference's scorer."""
