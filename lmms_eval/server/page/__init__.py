"""The web page over the evaluation server: what can be chosen, requests as commands and files, the page itself."""
