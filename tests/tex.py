"""TeX engines for tests of LaTeX."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_DOCUMENT = r"""\documentclass{article}
\usepackage{booktabs,graphicx}
\begin{document}
\listoftables
\input{table.tex}
\end{document}
"""
ENGINES = tuple(name for name in ("pdflatex", "lualatex", "xelatex", "tectonic") if shutil.which(name))
"""The engines of this machine."""
_FLAGS = ("-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape")
_SECONDS = 300


def compiled(text: str, folder: Path, engine: str) -> str:
    """Compile a table twice, so that the list of tables is read too; return the log."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.tex").write_text(text, encoding="utf-8")
    (folder / "paper.tex").write_text(_DOCUMENT, encoding="utf-8")
    words = ["tectonic", "paper.tex"] if engine == "tectonic" else [engine, *_FLAGS, "paper.tex"]
    log = ""
    for _ in range(1 if engine == "tectonic" else 2):
        ended = subprocess.run(words, cwd=folder, capture_output=True, timeout=_SECONDS, check=False)
        log = ended.stdout.decode("utf-8", "replace")
        assert ended.returncode == 0, log[-3000:]
    assert (folder / "paper.pdf").stat().st_size > 1000
    return log


def engines() -> tuple[str, ...]:
    """Return the engines of this machine that can make a document; skip the test without any."""
    if not ENGINES:
        pytest.skip("no TeX engine here: install texlive-latex-recommended (or tectonic)")
    if shutil.which("kpsewhich"):
        found = subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, check=False)
        if found.returncode:
            pytest.skip("this TeX has no booktabs: install texlive-latex-recommended")
    return ENGINES
