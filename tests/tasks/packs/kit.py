"""Wheels of task files, and a package index of them, made by the tests."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import zipfile
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PLAIN = (
    "task: {name}\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: rows.jsonl}}}}\ntest_split: test\n"
    "doc_to_text: '{{{{q}}}}?'\ndoc_to_target: a\n"
    "metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]\n"
)
CODE = "def text(doc):\n    return doc['q']\n"
ROWS = '{"q": "one", "a": "1"}\n{"q": "two", "a": "2"}\n'
TASKS: Mapping[str, str] = {
    "kitchen/tasks/plain/plain.yaml": PLAIN.format(name="kit_plain") + "tag: kit_tag\n",
    "kitchen/tasks/plain/rows.jsonl": ROWS,
    "kitchen/tasks/coded/coded.yaml": "include: ../plain/plain.yaml\ntask: kit_coded\n"
    "doc_to_text: !function utils.text\n",
    "kitchen/tasks/coded/utils.py": CODE,
    "kitchen/tasks/group.yaml": "group: kit_group\ntask: [kit_plain]\n",
    "kitchen/__init__.py": "raise SystemExit('the package was imported')\n",
}
"""Files of a package with a task of YAML, one with code, and a group."""


def wheel(folder: Path, version: str = "1.0", files: Mapping[str, str] = TASKS, package: str = "kitchen") -> Path:
    """Write a wheel with these files, a licence and what an index needs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{package}-{version}-py3-none-any.whl"
    info = f"{package}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as opened:
        for name, text in files.items():
            opened.writestr(name, text)
        opened.writestr(f"{info}/licenses/LICENSE", "Do as you like.\n")
        opened.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        opened.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        opened.writestr(f"{info}/RECORD", "")
    return path


@contextlib.contextmanager
def index_of(*wheels: Path, sha256: str = "") -> Iterator[str]:
    """Serve wheels as a simple index, and yield its address. ``sha256``: state this hash instead of the right ones."""
    files = {path.name: path.read_bytes() for path in wheels}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/").rpartition("/")[2]
            page = "".join(
                f'<a href="/files/{file}#sha256={sha256 or hashlib.sha256(data).hexdigest()}">{file}</a>'
                for file, data in files.items()
                if file.startswith(f"{name}-")
            )
            data = files.get(name) or page.encode()
            self.send_response(200 if data else 404)
            self.send_header("Content-Type", "application/octet-stream" if name in files else "text/html")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple/"
    finally:
        server.shutdown()
        server.server_close()
