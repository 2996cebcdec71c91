"""Files that survive a kill: journals, run folders, files replaced as a whole."""
