"""The evaluation server: an HTTP interface to jobs. Each job is a command-line process that survives the server."""
