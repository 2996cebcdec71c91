from __future__ import annotations

from pathlib import Path

from lmms_eval.utils.latex import latex_document, latex_float, latex_table, latex_tabular, latex_text
from lmms_eval.utils.terminal import Column
from tests.cases import for_each
from tests.tex import compiled, engines

LATEX = {
    "markup": ("a_b & 5% of {x}", r"a\_b \& 5\% of \{x\}"),
    "a command": (r"\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
    "signs": ("↑ ± -1.5 GPT-4 [-2, -1]", r"$\uparrow$ $\pm$ $-$1.5 GPT-4 [$-$2, $-$1]"),
    "two lines": ("a\n%b", r"a \%b"),
    "what a terminal would act on": ("\x1b[2J", r"\textbackslash{}u001b[2J"),
    "quotes and bars": ('"a" `b` |', r"''a'' \textasciigrave{}b\textasciigrave{} \textbar{}"),
    "dashes": ("--model – x", r"-{}-model -- x"),
    "accents": ("é ï Łódź ö", r"{\'e} {\"\i} \L{}{\'o}d{\'z} {\"o}"),
    "other scripts": ("模型-7B", r"\evalglyph{模型}{U+6A21 U+578B}-7B"),
}

HOSTILE = (
    r"\input{/etc/passwd}", r"\end{tabular}\write18{id}", "a_b & 5% of {x} $y$ #1 ~^", "模型-7B 🚀 مرحبا",
    "é ï Łódź ģ ĳ ½",
    '"q" `b` <i>|x|', "[c]\n%z", "µ ± × ≤ † ² –", "\x1b[2J\u202e", "^^41 \\\\ \\par", "", "ﬁ\u0301\u200d",
)  # fmt: skip


@for_each("text, found", LATEX.values(), ids=LATEX)
def test_texts_in_latex(text: str, found: str) -> None:
    assert latex_text(text) == found


def test_a_table_in_latex() -> None:
    made = latex_table([Column("Name", ("a_b", "[c] | d"), True), Column("N", ("1", "2.5"))])
    assert made.splitlines() == [
        r"% needs \usepackage{booktabs}", r"\begin{tabular}{lr}", r"\toprule", r"{}Name & N \\", r"\midrule",
        r"{}a\_b & 1.0 \\", r"{}[c] \textbar{} d & 2.5 \\", r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip


@for_each("width, name, is_scaled", [(20, "table", False), (80, "table*", False), (200, "table*", True)])
def test_wide_tables_take_the_page(width: int, name: str, is_scaled: bool) -> None:
    made = latex_document(latex_float("TABLE\n", "title", "caption", ("[a] note",), width))
    assert f"\\begin{{{name}}}[t]" in made and made.rstrip().endswith(f"\\end{{{name}}}")
    assert ("\\resizebox" in made) == ("graphicx" in made) == is_scaled
    assert "\\caption[title]{caption}" in made and "\n\\leavevmode{}[a] note}" in made


def test_hostile_texts_compile(tmp_path: Path) -> None:
    body = latex_tabular([Column("Name|", HOSTILE, True), Column(HOSTILE[0], tuple(map(str, range(len(HOSTILE)))))])
    texts = [latex_text(text) for text in HOSTILE]
    document = latex_document(latex_float(body, "Scores", " ".join(texts), texts, 200))
    for engine in engines():
        log = compiled(document, tmp_path / engine, engine)
        assert "root:" not in log  # the file that a text names is not read
