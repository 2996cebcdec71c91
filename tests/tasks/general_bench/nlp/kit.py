"""A whole item of each type of language task, and JSON values as a hostile file might hold them."""

from hypothesis import strategies as st

from lmms_eval.tasks.general_bench.nlp.types import TYPES

CODE = "def add(first, second):\n    total = first + second\n    return total\n"
_TEMPLATE = {"input": {"prompt": "Label this: <<<raw_text>>>", "raw_text": "a text"}, "output": {"label": "Joy, Fear"}}
ITEMS = {
    "MultipleChoiceQA": {"input": {"question": "q?", "options": ["x", "y", "z"]}, "output": {"answer": "B"}},
    "OpenQA": {"input": {"question": "q?", "context": "c"}, "output": {"answer": "it"}},
    "Summarization": {"document": "d", "output": {"summary": "s"}},
    "Translation": {"in": "English", "out": "French", "input": "yes", "output": "oui"},
    "Story Generation": {"input": {"prompt": "a fox"}, "output": {"story": "Once"}},
    "Dialogue": {"dialog": ["hi", "hello"], "output": {"reference": "bye"}},
    "Code Generation": {
        "language": "Python",
        "goal": "add",
        "context": [
            {"type": "description", "content": "two numbers"},
            {"type": "example", "content": [{"input": "1 2", "output": "3"}]},
        ],
        "output": {"response": {"content": CODE}},
    },
    "Code Repair": {"input": {"prompt": "mend", "sourceCode": "x ="}, "output": {"repairCode": CODE}},
    "Code Defect Detection": {"func": "int f();", "output": {"target": 1}},
    "Text to SQL": {"input": {"context": "table t", "question": "all?"}, "output": {"sql": "SELECT 1"}},
    "Code Explanation": {"code": "x = 1", "output": {"nl": "sets x"}},
    "Proof": {"statement": "1 = 1", "output": {"proof": {"steps": ["one", "two"], "conclusion": "done"}}},
    "Mathematical Word Problem Solving": {
        "problem": {"text": "6 * 7?", "constraints": ["whole"]},
        "output": {"solution": {"final_answer": "42"}},
    },
    "Paraphrase Generation": {"input": {"originalSentence": "s"}, "output": {"paraphraseSentence": "p"}},
    "Grammar Correction": {
        "input": {"Error Type": "tense", "Ungrammatical Statement": "he go"},
        "output": {"Standard English": "he goes"},
    },
    "Text Style Transfer": {"input": {"text": "hey", "style": "formal"}, "output": {"answer": "good day"}},
    "Table-to-Text Generation": {
        "input": {"table": [{"header": ["a", "b"], "rows": [["1", 2]]}]},
        "output": {"response": {"text": "a is 1"}},
    },
    "Time Series": {"input": {"data": [1, 2.5]}, "output": {"target": 3}},
    **{name: _TEMPLATE for name, kind in TYPES.items() if kind.metric == "Micro-F1"},
}


def item_of(type_name, **changes):
    return {"id": 7, **ITEMS[type_name], **changes}


_leaf = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["A", "nan", "1e999"]),
)
_keys = st.sampled_from(
    ["id", "output", "answer", "summary", "highlights", "translation", "target", "proof", "steps", "conclusion",
     "label", "prediction", "prediction_final", "response", "content", "text", "solution", "final_answer", "reference",
     "sql"]
)  # fmt: skip
json_value = st.recursive(
    _leaf,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_keys, inner, max_size=4)),
    max_leaves=12,
)
