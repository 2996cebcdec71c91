"""The one HTML file of the page, and the rules by which browsers may load anything into it."""

from __future__ import annotations

SCRIPT, STYLE = "ui.js", "ui.css"


def policy(nonce: str) -> str:
    """Content-Security-Policy: scripts and styles that bear this answer's nonce, data of this server, nothing else."""
    rules = {
        "default-src": "'none'",
        "script-src": f"'nonce-{nonce}'",
        "style-src": f"'nonce-{nonce}'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def page(nonce: str) -> str:
    """Make the page."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>lmms-eval</title>
<link rel="stylesheet" href="{STYLE}" nonce="{nonce}">
</head>
<body>
<div id="app"></div>
<noscript>This page is drawn by a script of the same server: allow scripts to use it.</noscript>
<script src="{SCRIPT}" nonce="{nonce}"></script>
</body>
</html>
"""
