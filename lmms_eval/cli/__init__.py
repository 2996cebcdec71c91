"""The command line: one module for each subcommand. They parse, call and print; logic lives elsewhere."""
