"""Reports and views of runs: web pages as a folder of files, without a server, and pages of a live view."""
