import hashlib
import json
import re

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.mmie import judge_prompts
from lmms_eval.tasks.mmie.judge_prompts import CONSTANTS, built_in, load_prompts, prompts, prompts_identity

FILE = '''
"""A user's file."""
import os
os.abort()
SA_SYSTEM_PROMPT = """story
"""
PBL_SYSTEM_PROMPT: str = "how" "-to\\n" + "x"
MSR_PROMPT = OTHER = 'maths'
MSR_LEAD_IN = "It is "
'''


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "prompts.py"
        path.write_text(text)
        return path

    return write


def test_our_texts_ask_for_the_criteria_and_the_form():
    texts = built_in().systems
    for tag, first, second in (
        ("SA", "story", "Innovation"),
        ("PBL", "step", "practical"),
        ("MSR", "reasoning", "easy"),
    ):
        assert first in texts[tag]
        assert second in texts[tag]
        assert len(re.findall(r"^\d\. ", texts[tag], re.MULTILINE)) == 6
        assert texts[tag].index("### Feedback") < texts[tag].index("### Score")
        assert texts[tag].endswith("\n\n")
    assert "take off 1" in texts["SA"]
    assert "take off 1" in texts["PBL"]
    assert "take off" not in texts["MSR"]
    assert not built_in().is_official
    assert built_in().metric == "mmie_judge"


def test_a_users_texts_are_read_and_never_run(written):
    prompts = load_prompts(written(FILE))
    assert dict(prompts.systems) == {"SA": "story\n", "PBL": "how-to\nx", "MSR": "maths"}
    assert prompts.lead_in == "It is "
    assert prompts.metric == "mmie_judge"
    assert prompts.fingerprints()["SA"] == hashlib.sha256(b"story\n").hexdigest()


def test_only_the_official_fingerprints_make_the_published_metric(written, monkeypatch):
    prompts = load_prompts(written(FILE))
    monkeypatch.setattr(judge_prompts, "OFFICIAL", {tag: prompts.fingerprints()[tag] for tag in prompts.systems})
    assert prompts.is_official
    assert prompts.metric == "mmie_score"
    changed = load_prompts(written(FILE.replace("maths", "Maths")))
    assert changed.metric == "mmie_judge"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FILE.replace("MSR_LEAD_IN", "LEAD"), "there is no text MSR_LEAD_IN .*the text between"),
        (FILE.replace("'maths'", "build()"), "there is no text MSR_PROMPT;"),
        (FILE.replace("'maths'", "5"), "there is no text MSR_PROMPT;"),
        ("def f(:", "cannot be parsed"),
        ("x = '\0'", "cannot be parsed"),
    ],
)
def test_what_is_refused(written, text, said):
    with pytest.raises(DataError, match=said):
        load_prompts(written(text))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        load_prompts(tmp_path / "none.py")


def test_prompt_texts_of_the_user(tmp_path):
    file = tmp_path / "prompts.py"
    file.write_text("\n".join(f"{name} = 'our {name}'" for name in CONSTANTS.values()))
    texts = prompts(str(file))
    assert texts.systems["SA"] == "our SA_SYSTEM_PROMPT" and texts.metric == "mmie_judge"
    assert prompts_identity({"judge_prompts": str(file)}) != prompts_identity(None)
    with pytest.raises(DataError, match=r"none.py"):
        prompts_identity({"judge_prompts": str(tmp_path / "none.py")})


def test_texts_in_a_json_file(tmp_path):
    file = tmp_path / "prompts.json"
    file.write_text(json.dumps({name: f"our {name}" for name in CONSTANTS.values()}))
    texts = load_prompts(file)
    assert texts.lead_in == "our MSR_LEAD_IN" and texts.systems["PBL"] == "our PBL_SYSTEM_PROMPT"
