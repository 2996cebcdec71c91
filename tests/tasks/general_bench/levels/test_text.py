import csv
import json

import pytest

from lmms_eval.tasks.general_bench.levels.paper import find_scope, rank_paper
from lmms_eval.tasks.general_bench.levels.reference import rank_reference, specialists
from lmms_eval.tasks.general_bench.levels.sensitivity import sensitivity
from lmms_eval.tasks.general_bench.levels.tables import LevelRow
from lmms_eval.tasks.general_bench.levels.text import as_csv, as_json, log, summary
from tests.tasks.general_bench.levels.kit import table_of


def ranked_of(scope="A"):
    ranked = rank_paper(
        "m", table_of({"Causal Reasoning": 70, "SongGeneration": 0, "Ethical Reasoning": "x"}), find_scope(scope)
    )
    return ranked, sensitivity(ranked, draws=20)


def test_what_is_printed():
    text = summary(*ranked_of())
    assert "General-Level of m (profile paper)" in text
    assert "|Audio   |24 |20 |1 of 44  |1   |2.50   |2.50   |0.00   |" in text
    assert "NLP: 1 of T = 115 supported, 1 wins, 0.61 of 100" in text
    assert "|4    |0.00 |none (0 in every draw)|" in text
    assert "level reached: 3" in text
    assert "tasks without a score: 697 of 699" in text


def test_the_log_has_every_task_and_remark():
    text = log(*ranked_of())
    assert "Causal Reasoning [accuracy]: 70 -> 70.0000; specialist 65 -> 65.0000; win" in text
    assert "SongGeneration [fad]: 0 -> 100.0000" in text
    assert "error: sheet NLP" in text
    assert text.count("]: none; specialist") == 697


def test_json_is_unrounded():
    ranked, found = ranked_of()
    content = json.loads(as_json(ranked, found))
    assert content["levels"] == {f"level{level}": score for level, score in ranked.levels.items()}
    assert content["modalities"]["Video"]["M"] == 126
    assert content["language"]["T"] == 115
    assert len(content["missing"]) == 697
    fourth = content["sensitivity"]["level4"]
    assert (fourth["interval"], fourth["no_interval"]) == (None, "0 in every draw")
    assert len(content["tasks"]) == 699
    assert content["sensitivity"]["level5"]["wins_needed"] == 1
    assert len(content["problems"]) == 1


def test_csv_has_a_line_for_each_modality():
    lines = list(csv.DictReader(as_csv(ranked_of()[0]).splitlines()))
    assert [line["part"] for line in lines] == ["Image", "Video", "Audio", "3D", "NLP", "all"]
    assert lines[2]["level3"] == "2.5"
    assert lines[4]["wins"] == "1"


def test_a_scope_shows_the_levels_it_has():
    ranked, found = ranked_of("C:Audio-Generation")
    text = summary(ranked, found)
    assert "scope C:Audio-Generation" in text
    assert "level 4" not in text
    assert "NLP" not in text
    assert json.loads(as_json(ranked, found))["language"] is None


def test_specialists_without_score_are_null():
    theirs = {name: [LevelRow(row.name, row.metric, None) for row in rows] for name, rows in specialists().items()}
    ranked = rank_reference("m", table_of({}), theirs)
    content = json.loads(as_json(ranked, sensitivity(ranked, draws=0)), parse_constant=pytest.fail)
    assert content["tasks"][0]["specialist"] is None
    assert content["levels"]["level2"] == 0
