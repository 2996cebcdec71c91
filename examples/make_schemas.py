"""Write the JSON Schemas of the files of a run (``lmms_eval/schemas``) from their types: ``make schemas``."""

from __future__ import annotations

from lmms_eval.results.schema import FOLDER, TYPES, schema_file, schema_text


def main() -> None:
    for stale in set(FOLDER.glob("*.json")) - {schema_file(name) for name in TYPES}:
        stale.unlink()
    for name in TYPES:
        schema_file(name).write_text(schema_text(name), encoding="utf-8")
        print(schema_file(name))


if __name__ == "__main__":
    main()
