"""The committed bundle is what its sources give."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import lmms_eval.viewer

VIEWER = Path(lmms_eval.viewer.__file__).parent


def test_the_bundle_is_what_the_sources_give(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("the bundle is built with Node, which is not here")
    if not (VIEWER / "web/node_modules/esbuild").is_dir():
        pytest.skip("the bundle is built with packages that `make viewer` installs")
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=VIEWER / "web", check=True, capture_output=True)
    for name in ("app.js", "app.css", "ui.js", "ui.css", "LICENSES.txt"):
        assert (tmp_path / name).read_bytes() == (VIEWER / "bundle" / name).read_bytes(), "run `make viewer`"


def test_the_bundle_asks_for_nothing_from_elsewhere() -> None:
    for name in ("app", "ui"):
        style = (VIEWER / f"bundle/{name}.css").read_text()
        assert "url(" not in style
        assert "@import" not in style
        script = (VIEWER / f"bundle/{name}.js").read_text()
        for word in ("XMLHttpRequest", "WebSocket", "sendBeacon", "eval(", "new Function"):
            assert word not in script, (name, word)
    script = (VIEWER / "bundle/app.js").read_text()
    # The reader of formulas has a method of this name; the browser's takes an address, which is one of a view's own.
    asked = re.findall(r"(?<![.\w$])fetch\((?!\))(.{7})", script)
    assert sorted(asked) == ["`change", "`data/$"]
