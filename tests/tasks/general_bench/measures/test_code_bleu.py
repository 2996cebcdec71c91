from __future__ import annotations

import builtins
import json
import logging
import os
import subprocess
import sys
import time

import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.general_bench.measures.code_bleu import MAX_CODE, code_bleu, code_fault

ADD = "def add(a, b):\n    total = a + b\n    return total\n"
JAVA = "int add(int a, int b) {\n    int total = a + b;\n    return total;\n}\n"
UNRELATED = "print('hello')"


@pytest.fixture
def package():
    pytest.importorskip("codebleu", reason="needs codebleu (extra general_bench)")
    pytest.importorskip("tree_sitter_python", reason="needs tree-sitter-python (extra general_bench)")


@pytest.mark.usefixtures("package")
def test_identity_and_bounds():
    assert code_bleu([ADD], [ADD]) == pytest.approx(1)
    assert 0 <= code_bleu([UNRELATED], [ADD]) < code_bleu([ADD.replace("total", "sum_")], [ADD]) < 1
    assert code_bleu([], []) == 0.0


@pytest.mark.usefixtures("package")
def test_it_is_one_corpus_and_not_a_mean():
    both = code_bleu([ADD, UNRELATED], [ADD, ADD * 3])
    assert both != pytest.approx((code_bleu([ADD], [ADD]) + code_bleu([UNRELATED], [ADD * 3])) / 2, abs=1e-3)
    assert both == pytest.approx(code_bleu([UNRELATED, ADD], [ADD * 3, ADD]))


@pytest.mark.usefixtures("package")
def test_an_answer_without_matter_scores_a_quarter_where_the_reference_has_no_data_flow():
    assert code_bleu([""], ["def add(a, b):\n    return a + b\n"]) == pytest.approx(0.25)


@pytest.mark.usefixtures("package")
def test_java():
    pytest.importorskip("tree_sitter_java", reason="needs tree-sitter-java (extra general_bench)")
    assert code_bleu([JAVA], [JAVA], "java") == pytest.approx(1)
    assert code_bleu([UNRELATED], [JAVA], "java") < 0.5


@pytest.mark.usefixtures("package")
def test_the_packages_warnings_leave_the_root_logger_alone(caplog):
    handlers, filters = list(logging.getLogger().handlers), list(logging.getLogger().filters)
    code_bleu([UNRELATED], ["x"])
    assert not caplog.records
    assert (logging.getLogger().handlers, logging.getLogger().filters) == (handlers, filters)


COUNT = """def merge(a, b, key):
    out = {}
    for name in b:
        if name in out and key:
            out[name] = out[name] + b[name] * key
        else:
            out[name] = b[name]
    total = sum(out.values()) + len(a) - len(b)
    return out, total
"""
COUNT_AGAIN = """def merge(first, second, key):
    result = {}
    for k in second:
        if key and k in result:
            result[k] = second[k] * key + result[k]
        else:
            result[k] = second[k]
    count = len(first) - len(second) + sum(result.values())
    return result, count
"""
LOOP = """int f(int a, int b, int c) {
    int x = a + b * c;
    int y = x - b;
    for (int i = 0; i < y; i++) { x = x + i * a; y = y - x; }
    return x + y + a;
}"""
LOOP_AGAIN = """int f(int p, int q, int r) {
    int s = q * r + p;
    int t = s - q;
    for (int j = 0; j < t; j++) { s = j * p + s; t = t - s; }
    return p + s + t;
}"""
PAIRS = [[COUNT_AGAIN, COUNT, "python"], [LOOP_AGAIN, LOOP, "java"]]
SCRIPT = f"""import json
from lmms_eval.tasks.general_bench.measures.code_bleu import code_bleu
print(json.dumps([code_bleu([answer], [wanted], language) for answer, wanted, language in {PAIRS!r}]))
"""


@pytest.mark.usefixtures("package")
def test_a_score_does_not_change_with_the_seed_of_hashes():
    pytest.importorskip("tree_sitter_java", reason="needs tree-sitter-java (extra general_bench)")
    started = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        for seed in ("1", "2")
    ]
    found = [json.loads(one.stdout) for one in started]
    assert found[0] == found[1]
    assert found[0] == [code_bleu([answer], [wanted], language) for answer, wanted, language in PAIRS]


@pytest.mark.usefixtures("package")
def test_an_absent_grammar_is_not_a_score(monkeypatch):
    monkeypatch.setitem(sys.modules, "tree_sitter_ruby", None)
    with pytest.raises(NotEvaluated, match=r"lmms_eval\[general_bench\]"):
        code_bleu(["puts 1"], ["puts 1"], "ruby")


@pytest.mark.usefixtures("package")
def test_a_failure_in_the_package_is_not_a_score(monkeypatch):
    import codebleu

    def fails(*args, **kwargs):
        raise TypeError("an integer is required")

    monkeypatch.setattr(codebleu, "calc_codebleu", fails)
    with pytest.raises(NotEvaluated, match="TypeError: an integer is required"):
        code_bleu([ADD], [ADD])


def test_an_absent_package_is_not_a_score(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] in ("codebleu", "tree_sitter"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NotEvaluated, match="cannot be imported"):
        code_bleu([ADD], [ADD])


HOSTILE = {
    "brackets": "(" * 19_000,
    "unary": "-" * 19_000 + "1",
    "attributes": "a" + ".b" * 9_000,
    "sum": "a" + "+b" * 9_000,
    "not": "not " * 4_000 + "x",
    "quotes": "'" * 19_000,
    "branches": "if a:\n b\n" + "elif b:\n c\n" * 1_700,
    "surrogate": "x = '\ud800'",
    "zero": "x\0y",
}


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_programs_are_scored_or_refused_at_once(name):
    begin = time.perf_counter()
    if fault := code_fault(HOSTILE[name]):
        with pytest.raises(NotEvaluated, match="answer 1 has a syntax tree deeper"):
            code_bleu([ADD, HOSTILE[name]], [ADD, ADD])
        assert "deeper" in fault
    else:
        assert 0 <= code_bleu([HOSTILE[name]], [ADD]) <= 1
    assert time.perf_counter() - begin < 20


@pytest.mark.usefixtures("package")
def test_what_is_refused():
    assert code_fault("x" * (MAX_CODE + 1)) == f"has more than {MAX_CODE} characters"
    assert code_fault(HOSTILE["unary"])
    assert not code_fault(ADD)
    assert not code_fault("")
