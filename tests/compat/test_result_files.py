from __future__ import annotations

import pytest

from lmms_eval.compat import helpers as files


def test_parts_of_a_name() -> None:
    assert files.get_file_datetime("samples_mme_2024-01-02.jsonl") == "2024-01-02"
    assert files.get_file_datetime("results_2024.json") == "2024.json"
    assert files.get_file_task_name("samples_mme_cot_2024-01-02.jsonl") == "mme_cot"
    assert (files.get_file_datetime("plain"), files.get_file_task_name("plain")) == ("plain", "plai")


def test_the_latest_is_the_last_text() -> None:
    assert files.get_latest_filename(["b_10.jsonl", "a_9.jsonl"]) == "a_9.jsonl"
    with pytest.raises(ValueError, match="empty"):
        files.get_latest_filename([])


def test_kinds_of_files() -> None:
    names = ["out/results_1.json", "out/samples_t_1.jsonl", "samples_t_1.jsonl", "results.txt"]
    assert files.get_results_filenames(names) == names[:1]
    assert files.get_sample_results_filenames(names) == names[1:2]
