"""Check the contents of a wheel and a source distribution: required files, forbidden files and sizes."""

from __future__ import annotations

import argparse
import re
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

WHEEL_BYTES, SDIST_BYTES = 8_000_000, 12_000_000
"""Largest sizes. A larger file contains something unintended, or the limit must be raised on purpose."""
IN_WHEEL = (
    r"lmms_eval/py\.typed",
    r"lmms_eval/__main__\.py",
    r"lmms_eval/requirements-lean\.txt",
    r"lmms_eval/schemas/results\.schema\.json",
    r"lmms_eval/viewer/bundle/app\.js",
    r"lmms_eval/viewer/bundle/app\.css",
    r"lmms_eval/viewer/bundle/LICENSES\.txt",
    r"lmms_eval/models/embedded/model\.safetensors",
    r"lmms_eval/models/embedded/tokenizer\.json",
    r"lmms_eval/compat/aliases\.tsv",
    r"lmms_eval/tasks/facts\.tsv",
    r"lmms_eval/tasks/megabench/megabench_demo\.yaml",
    r"lmms_eval/tasks/megabench/demo/.+",
    r"lmms_eval/tasks/milebench/demo/.+",
    r"lmms_eval/tasks/mmie/demo/data\.json",
    r"lmms_eval/tasks/general_bench/demo/.+",
    r"lmms_eval/tasks/mmmu/README\.md",
    r"lmms_eval-[^/]+\.dist-info/licenses/LICENSE",
    r"lmms_eval-[^/]+\.dist-info/licenses/NOTICE",
    r"lmms_eval-[^/]+\.dist-info/licenses/lmms_eval/viewer/bundle/LICENSES\.txt",
)
NOT_IN_WHEEL = (
    r"tests/",
    r"docs/",
    r".*node_modules/",
    r"lmms_eval/viewer/web/",
    r"examples/",
    r"benchmarks/",
    r"release/",
)
STATED = r"lmms_eval/(models/embedded|tasks/[^/]+/demo)/"
"""Folders of weights and data. ``NOTICE`` states their origin and terms."""
OF_SOMEBODY = (
    r".+\.(avi|bin|flo|gif|gz|h5|jpe?g|jsonl|mp[34]|npy|npz|onnx|otf|parquet|pdf|png|pth?|safetensors|ttf|wav|webp|woff2?"
    r"|zip)"
)
"""Kinds of files that may be the work of others."""
IN_SDIST = (
    r"pyproject\.toml",
    r"LICENSE",
    r"NOTICE",
    r"CHANGELOG\.md",
    r"CITATION\.cff",
    r"SECURITY\.md",
    r"CODE_OF_CONDUCT\.md",
    r"Dockerfile",
    r"constraints\.txt",
    r"constraints-engines\.txt",
    r"\.github/workflows/check\.yml",
    r"\.ci/run",
    r"lmms_eval/viewer/bundle/LICENSES\.txt",
    r"examples/task/paint\.py",
    r"Makefile",
    r"tests/conftest\.py",
    r"docs/install\.md",
    r"examples/tiny_vlm/train\.py",
    r"examples/make_mmie_demo\.py",
    r"lmms_eval/viewer/web/package\.json",
)
NEVER = (r".*\.pyc", r".*__pycache__/", r".*node_modules/", r".*\.DS_Store", r"(.*/)?\.venv", r".*\.env$")


def wheel_problems(names: Sequence[str], size: int) -> list[str]:
    """Return the problems of a wheel's list of files."""
    outside = [name for name in names if not re.match(r"lmms_eval(/|-[^/]+\.dist-info/)", name)]
    strange = [name for name in names if re.fullmatch(OF_SOMEBODY, name) and not re.match(STATED, name)]
    return [
        *(f"NOTICE does not state the origin of {name}" for name in strange[:5]),
        *_problems(names, size, IN_WHEEL, NOT_IN_WHEEL, WHEEL_BYTES),
        *(f"{name} lies outside of the package" for name in outside[:5]),
    ]


def sdist_problems(names: Sequence[str], size: int) -> list[str]:
    """Return the problems of a source distribution's list of files, given without its folder."""
    return _problems(names, size, IN_SDIST, (), SDIST_BYTES)


def _problems(names: Sequence[str], size: int, wanted: Sequence[str], unwanted: Sequence[str], limit: int) -> list[str]:
    found = [f"missing: {pattern}" for pattern in wanted if not any(re.fullmatch(pattern, name) for name in names)]
    for pattern in (*unwanted, *NEVER):
        found += [f"should not be there: {name}" for name in names if re.match(pattern, name)][:3]
    return found + ([f"{size:,} bytes are more than {limit:,}"] if size > limit else [])


def problems_of(path: Path) -> list[str]:
    """Return the problems of a distribution file."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel_problems(wheel.namelist(), path.stat().st_size)
    with tarfile.open(path) as sdist:
        return sdist_problems([name.partition("/")[2] for name in sdist.getnames()], path.stat().st_size)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+")
    code = 0
    for path in parser.parse_args().paths:
        problems = problems_of(path)
        print(f"{path.name}: {path.stat().st_size:,} bytes, {'; '.join(problems) or 'as it should be'}")
        code = code or int(bool(problems))
    return code


if __name__ == "__main__":
    raise SystemExit(main())
