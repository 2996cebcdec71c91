"""Build the site strictly: ``python docs/sphinx/build.py [FOLDER]`` (site)."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import navigation
import questions
import reference
import sources
from sphinx.cmd.build import build_main

HERE = Path(__file__).resolve().parent


def main(words: list[str]) -> int:
    """Assemble the pages, build them, and print their number. Any warning is an error."""
    out = Path(words[0]) if words else sources.ROOT / "site"
    work = out.with_name(f"{out.name}_work") if words else sources.ROOT / "build" / "docs"
    source = work / "source"
    sources.assemble(source)
    made = [*reference.write(source), *navigation.write_benchmarks(source)]
    navigation.write_index(source)
    questions.write(source)
    shutil.rmtree(out, ignore_errors=True)
    flags = ["-W", "--keep-going", "-q", "-E", "-b", "html", "-c", str(HERE), "-d", str(work / "doctrees")]
    code = build_main([*flags, str(source), str(out)])
    if code == 0:
        pages = [*source.rglob("*.md"), *source.rglob("*.rst")]
        counted = sum(1 for page in pages for _ in sources.links(page.read_text(encoding="utf-8")))
        print(f"{len(pages)} pages, {len(made)} of them generated; {counted} links hold")
        print(f"open {out / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
