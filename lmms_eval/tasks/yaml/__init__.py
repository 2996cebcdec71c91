"""Tasks that YAML files state: reading the file, prompts, media, requests, scoring."""
