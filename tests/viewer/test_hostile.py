"""Hostile Markdown, formulas, names and keys in every place of a report are only ever text, as written and rendered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from PIL import Image

from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.viewer.conftest import Watched, painted

ATTACKS = {
    "links": "[a](javascript:alert(1)) [b](data:text/html,<script>alert(1)</script>) <javascript:alert(1)> "
    "[c](https://example.invalid/c 'd') <https://example.invalid/e> [f][g]\n\n[g]: javascript:alert(1)",
    "pictures": '![a](https://example.invalid/a.png "t") ![b](data:image/svg+xml,<svg onload=alert(1)>) ![c](x.png)',
    "markup": "# <script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\n"
    "- <iframe srcdoc='<script>alert(1)</script>'>"
    "\n\n<style>*{display:none}</style>\n\n<link rel=stylesheet href=https://example.invalid/x.css>\n\n<object data=x>",
    "code": '```html" onclick=alert(1)\n</code></pre><script>alert(1)</script>\n```\n`<img src=x onerror=alert(1)>`',
    "entities": "&lt;script&gt;alert(1)&lt;/script&gt; &#x202e;evil &#8203; &Tab; &#0;",
    "addresses": r"$\href{javascript:alert(1)}{here}$ $\url{https://example.invalid}$ "
    r"\(\includegraphics{https://x.invalid/x.png}\)",
    "extensions": r"$\htmlData{onclick=alert(1)}{x}$ $\htmlStyle{display:none}{y}$ $\htmlId{app}{z}$ "
    r"$\htmlClass{problem}{w}$",
    "mutations": r"$\text{<math><mtext><table><mglyph><style><!--</style>"
    r"<img title=\"--&gt;&lt;img src=x onerror=alert(1)>}$"
    "\n\n<math><mtext><style><img src=x onerror=alert(1)></style></mtext></math>",
    "macros": r"$$\def\a{\a\a}\a$$ $$\edef\b{xxxxxxxx}\edef\c{\b\b\b\b}\c$$ $\newcommand{\frac}{\text{no}}\frac{1}{2}$",
    "console": r"$\message{shown}\errmessage{shown}\show\x$",
    "covered": r"$\color{white}hidden \phantom{ghost} \kern{-50em}over \rlap{on} \Huge big \rule{500em}{500em}$ % note",
    "remarks": "$a % hidden \n b$ [//]: # (remark)\n\n[//]: # (remark)\n\n<!-- remark -->",
    "nested quotes": "> " * 400 + "deep",
    "nested lists": "\n".join("  " * depth + "- x" for depth in range(150)),
    "nested formula": "$" + r"\sqrt{" * 300 + "x" + "}" * 300 + "$",
    "wide table": "|a|" + "b|" * 400 + "\n|" + "-|" * 401 + "\n" + "|c\n" * 400,
    "long": "**x** " * 170_000,
    "controls": "**bold\u202eevil\u202c** $x\u200b + \u2066y\u2069$ `\x1b[31m\x07`\ufeff",
}
VISIBLE = {
    "links": ("javascript:alert(1)", "https://example.invalid/c", "https://example.invalid/e", "[g]: javascript"),
    "pictures": ("https://example.invalid/a.png", "x.png"),
    "markup": ("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<style>*{display:none}</style>"),
    "code": ("</code></pre><script>alert(1)</script>", 'html" onclick=alert(1)'),
    "entities": ("<script>alert(1)</script>", "U+202E", "U+200B"),
    "addresses": (r"\href{javascript:alert(1)}{here}", r"\url{https://example.invalid}", r"\includegraphics{"),
    "extensions": (r"\htmlData{onclick=alert(1)}{x}", r"\htmlStyle{display:none}{y}"),
    "mutations": ("<img src=x onerror=alert(1)>",),
    "macros": (r"\def\a{\a\a}\a", r"\newcommand{\frac}"),
    "console": (r"\message{shown}",),
    "covered": ("𝑔\nℎ\n𝑜\n𝑠\n𝑡", "% note"),
    "remarks": ("% hidden", "[//]: # (remark)", "<!-- remark -->"),
    "nested quotes": ("deep",),
    "nested formula": (r"\sqrt{\sqrt{",),
    "controls": ("U+202E", "U+200B", "U+001B", "U+FEFF"),
}
PLAIN = {"nested quotes", "nested lists", "wide table", "long"}
"""Texts that are too long or too deep to be rendered."""
NAME = "<img src=x onerror=alert(9)> $\\href{javascript:alert(9)}{x}$ [a](javascript:alert(9)) \u202egpj"
KEY = "**k** <script>alert(9)<\\script> \u202e"
OFFENDERS = """() => [...document.querySelectorAll('#app *')].filter((element) =>
    element.matches('script, iframe, object, embed, style, link, base, form, meta, video, source, foreignObject')
    || element.matches('.rich :is(a, img, svg, input, button, [style], [id], [href], [src])')
    || [...element.attributes].some(({ name, value }) => (!['href', 'value'].includes(name) && value.includes('\u202e'))
        || /^(on|xlink|srcset|action)/i.test(name)
        || (name === 'href' && !value.startsWith('#/'))
        || (name === 'src' && !/^(media\\/|data:image\\/webp)/.test(value)))
).map((element) => element.outerHTML.slice(0, 200))"""


def write_run(folder: Path) -> Path:
    """A results file and its samples as another harness of the family writes them."""
    picture = f"{NAME.replace('/', '')}.png"
    folder.mkdir(parents=True)
    Image.new("RGB", (40, 30)).save(folder / picture)
    lines = [
        {
            "doc_id": name,
            "doc": {KEY: f"{KEY} {number % 3}", "text": attack[:2000]},
            "input": attack[:60_000],
            "target": attack[:60_000],
            "resps": [[attack[:60_000]]],
            "filtered_resps": [f"{attack} "],
            "raw_resps": [attack[:2000], NAME],
            "input_media": [picture],
            "finish_reason": NAME,
            "exact_match": 1.0,
            "judge": [
                {
                    "name": NAME,
                    "prompt_text": attack,
                    "text": attack,
                    "replies": [attack[:2000], NAME],
                    KEY: attack[:50],
                }
            ],
        }
        for number, (name, attack) in enumerate(ATTACKS.items())
    ]
    task = NAME.replace("/", "")
    (folder / f"20250101_000000_samples_{task}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    results = {
        "results": {task: {"alias": NAME, "exact_match,none": 1.0, f"{KEY},none": 0.5}},
        "configs": {task: {"task": task, "metadata": {KEY: NAME}}},
        "model_name": NAME,
        "config": {"model_args": NAME, KEY: NAME},
        "date": NAME,
        "n-samples": {task: {"original": len(lines), "effective": len(lines)}},
    }
    (folder / "20250101_000000_results.json").write_text(json.dumps(results))
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("hostile") / "<u>run<u>\u202e")


@pytest.fixture(scope="module", params=["folder", "file"])
def report(request: pytest.FixtureRequest, run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    is_file = request.param == "file"
    out = tmp_path_factory.mktemp("report") / ("one.html" if is_file else "report")
    write_report([str(run)], out, ReportOptions(single_file=is_file))
    return out


def addresses(page: Any) -> tuple[str, str]:
    """Those of the run and of its task."""
    links = [link.get_attribute("href") for link in page.query_selector_all("main a")]
    task = next(link for link in links if link.count("/") == 2)
    return task.rsplit("/", 1)[0], task


def test_names_and_keys_are_text(report: Path, watched: Watched) -> None:
    page = watched.open(report)
    run, task = addresses(page)
    assert "<img src=x onerror=alert(9)> $\\href" in page.inner_text("main")
    for address in ("#/", run, task, f"{task}?view=grid", f"{task}?q={quote(NAME)}", f"#/{quote(NAME, safe='')}"):
        page = watched.open(report, address)
        page.wait_for_timeout(400)
        assert page.evaluate(OFFENDERS) == [], address
        assert "\u202e" not in page.inner_text("body")
        assert "\u202e" not in page.title()


def test_texts_stay_texts_in_both_forms(report: Path, watched: Watched) -> None:
    page = watched.open(report)
    _, task = addresses(page)
    page = watched.open(report, f"{task}/links")
    page.wait_for_selector(".sample")
    painted(page)
    page.keyboard.press("m")
    for name in ATTACKS:
        page.evaluate("address => { location.hash = address; }", f"{task}/{quote(name)}")
        page.wait_for_selector(f"h1 bdi:text-is('{name}')")
        answer = page.wait_for_selector(".block:has(h2:text-is('Answer'))")
        assert (answer.query_selector(".rich") is None) == (name in PLAIN), name
        text = answer.inner_text()
        for words in VISIBLE.get(name, ()):
            assert words in text, name
        for hidden in "\u202e\u202c\u2066\u2069\u200b\ufeff\x1b\x07":
            assert hidden not in text, name
        assert page.evaluate(OFFENDERS) == [], name
        assert page.evaluate("window.innerWidth >= document.documentElement.scrollWidth"), name
        page.click("button:text-is('As written')")
        assert answer.inner_text() != text or name in PLAIN, name
        assert page.evaluate(OFFENDERS) == [], name
        page.click("button:text-is('Rendered')")
