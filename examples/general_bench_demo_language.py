"""Define the language tasks of General-Bench's demonstration data: one for each type of annotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ITEMS = 3


@dataclass(frozen=True)
class Language:
    """A task: its folder, the name of its row, its type, and its items without ids."""

    folder: str
    task: str
    type: str
    items: list[dict[str, Any]]


def _qa(question: str, answer: Any, **further: Any) -> dict[str, Any]:
    return {"input": {"question": question, **further}, "output": {"answer": answer}}


def _labelled(prompt: str, text: str, label: Any) -> dict[str, Any]:
    return {"input": {"prompt": f"{prompt}\n<<<raw_text>>>", "raw_text": text}, "output": {"label": label}}


def _stance(tweet: str, target: str, label: str) -> dict[str, Any]:
    prompt = "Stance of <<<tweets>>> to <<<target>>>: favor or against?"
    return {"input": {"prompt": prompt, "tweets": tweet, "target": target, "raw_text": ""}, "output": {"label": label}}


def _problem(text: str, answer: str, **further: Any) -> dict[str, Any]:
    return {"problem": {"text": text, **further}, "output": {"solution": {"final_answer": answer}}}


def _proof(statement: str, conclusion: str, *steps: str) -> dict[str, Any]:
    return {"statement": statement, "output": {"proof": {"steps": list(steps), "conclusion": conclusion}}}


def _story(prompt: str, story: str) -> dict[str, Any]:
    return {"input": {"prompt": prompt}, "output": {"story": story}}


def _said_again(sentence: str, paraphrase: str) -> dict[str, Any]:
    return {"input": {"originalSentence": sentence}, "output": {"paraphraseSentence": paraphrase}}


def _styled(text: str, style: str, answer: str) -> dict[str, Any]:
    return {"input": {"text": text, "style": style}, "output": {"answer": answer}}


def _code(goal: str, code: str) -> dict[str, Any]:
    context = [
        {"type": "description", "content": goal},
        {"type": "example", "content": [{"input": "2, 3", "output": "see the goal"}]},
    ]
    return {"language": "python", "goal": goal, "context": context, "output": {"response": {"content": code}}}


QUESTIONS = [
    Language("Commonsense-Reasoning", "Commonsense Reasoning", "MultipleChoiceQA", [
        _qa("What keeps rain off a walker?", "B", options=["a spoon", "an umbrella", "a candle"]),
        _qa("Where does a baker put dough?", "A", options=["into an oven", "under a bridge", "on a roof"]),
        _qa("What is used to cut paper?", "C", options=["a pillow", "a kettle", "scissors"]),
    ]),
    Language("Open-Domain-QA", "Open-Domain Question Answering", "OpenQA", [
        _qa("Which colour do blue and yellow paint give?", "green"),
        _qa("How many legs has a spider?", ["eight", "8"]),
        _qa("What does the ferry carry?", "three red carts", context="The ferry left with three red carts on board."),
    ]),
    Language("Table-QA", "Table Question Answering", "OpenQA", [
        _qa("Which town is the largest?", "Brim", table="town | people\nAsk | 210\nBrim | 940"),
        _qa("How many people live in Ask?", "210", table="town | people\nAsk | 210\nBrim | 940"),
        _qa("Which day was the wettest?", "Tuesday", table="day | rain\nMonday | 2 mm\nTuesday | 11 mm"),
    ]),
    Language("Word-Problems", "Mathematical Word Problem Solving", "Mathematical Word Problem Solving", [
        _problem("Four crates hold six jars each. How many jars?", "24"),
        _problem("A tram has 31 riders; 9 get off. How many stay?", "22", constraints=["whole riders only"]),
        _problem("Half of 50 tiles are grey. How many are grey?", "25"),
    ]),
    Language("Time-Series", "Time Series", "Time Series", [
        {"input": {"data": [1, 2, 3, 4]}, "output": {"target": 5}},
        {"input": {"data": [10, 10, 10]}, "output": {"target": 10}},
        {"input": {"data": [2.5, 2.0, 1.5]}, "output": {"target": 1.0}},
    ]),
]  # fmt: skip

TEXTS = [
    Language("Summaries", "Abstractive Summarization", "Summarization", [
        {"document": "The harbour was closed all morning because of fog. At noon the first boats left.",
         "output": {"summary": "Fog closed the harbour until noon."}},
        {"document_list": ["The bridge is being painted.", "It will be green."],
         "output": {"highlights": "The bridge is painted green."}},
        {"document": "A small bakery won the prize for its rye bread.", "output": {"summary": "A bakery won a prize."}},
    ]),
    Language("Translations", "English-French Translation", "Translation", [
        {"in": "English", "out": "French", "input": "The door is open.", "output": "La porte est ouverte."},
        {"in": "English", "out": "French", "input": "Cats sleep.", "output": {"translation": "Les chats dorment."}},
        {"in": "English", "out": "French", "input": "It is snowing.", "output": "Il neige."},
    ]),
    Language("Stories", "Story Generation", "Story Generation", [
        _story("A lamp that would not go out", "The lamp burned on through the night."),
        _story("The last bus", "The last bus came late and was empty."),
        _story("A letter in a boot", "She found a letter in the left boot."),
    ]),
    Language("Dialogues", "Multi-Turn Daily Dialogue Generation", "Dialogue", [
        {"dialog": ["Shall we walk?", "It is raining."], "output": {"reference": "Then let us take the tram."}},
        {"dialog": ["Have you eaten?"], "output": {"reference": "Not yet, I waited for you."}},
        {"dialog": ["The shop is closed."], "output": {"reference": ["We can come back tomorrow."]}},
    ]),
    Language("Paraphrases", "Paraphrase Generation", "Paraphrase Generation", [
        _said_again("The road was long.", "It was a long road."),
        _said_again("He left early.", "He went away early."),
        _said_again("Bread was scarce.", "There was little bread."),
    ]),
    Language("Grammar", "Grammar Correction", "Grammar Correction", [
        {"input": {"Error Type": "Verb", "Ungrammatical Statement": "She go home."},
         "output": {"Standard English": "She goes home."}},
        {"input": {"Error Type": "Article", "Ungrammatical Statement": "He has a apple."},
         "output": {"Standard English": "He has an apple."}},
        {"input": {"Error Type": "Plural", "Ungrammatical Statement": "Two boat sank."},
         "output": {"Standard English": "Two boats sank."}},
    ]),
    Language("Styles", "Text Style Transfer", "Text Style Transfer", [
        _styled("gimme the key", "polite", "Please give me the key."),
        _styled("that soup was bad", "polite", "The soup was not to my taste."),
        _styled("come now", "formal", "Please come at once."),
    ]),
    Language("Tables-to-Text", "Table-to-Text Generation", "Table-to-Text Generation", [
        {"input": {"table": [{"header": ["team", "goals"], "rows": [["Kites", "3"]]}]},
         "output": {"response": {"text": "The Kites scored three goals."}}},
        {"input": {"table": [{"header": ["town", "snow"], "rows": [["Ask", "12 cm"]]}]},
         "output": {"response": {"text": "Ask had 12 cm of snow."}}},
        {"input": {"table": [{"header": ["boat", "length"], "rows": [["Tern", "9 m"]]}]},
         "output": {"response": {"text": "The Tern is 9 m long."}}},
    ]),
    Language("Proofs", "Mathematical Proof Generation", "Proof", [
        _proof("The sum of two even numbers is even.", "It is even.", "Let them be 2a and 2b.", "2a + 2b = 2(a + b)."),
        _proof("An odd square is odd.", "It is odd.", "(2a + 1)^2 = 4a(a + 1) + 1."),
        _proof("n < n + 1.", "n < n + 1.", "1 is positive."),
    ]),
]  # fmt: skip

PROGRAMS = [
    Language("Code-Generation", "Code Generation", "Code Generation", [
        _code("Add two numbers", "def add(a, b):\n    return a + b\n"),
        _code("Tell whether a number is even", "def even(n):\n    return n % 2 == 0\n"),
        _code("Largest of a list", "def largest(values):\n    return max(values)\n"),
    ]),
    Language("Code-Repair", "Code Repair", "Code Repair", [
        {"input": {"prompt": "Mend the method.", "sourceCode": "int twice(int x) { return x * 3; }"},
         "output": {"repairCode": "int twice(int x) { return x * 2; }"}},
        {"input": {"prompt": "Mend the method.", "sourceCode": "boolean no() { return true; }"},
         "output": {"repairCode": "boolean no() { return false; }"}},
        {"input": {"prompt": "Mend the method.", "sourceCode": "int one() { return 11; }"},
         "output": {"repairCode": "int one() { return 1; }"}},
    ]),
    Language("Defects", "Code Defect Detection", "Code Defect Detection", [
        {"func": "int at(int *p) { return p[0]; }", "output": {"target": 0}},
        {"func": "char *copy(char *s) { char b[2]; strcpy(b, s); return b; }", "output": {"target": 1}},
        {"func": "int sum(int a, int b) { return a + b; }", "output": {"target": 0}},
    ]),
    Language("Code-Explanation", "Code Explanation", "Code Explanation", [
        {"code": "def f(x):\n    return x * x", "output": {"nl": "Returns the square of x."}},
        {"code": "def g(s):\n    return s[::-1]", "output": {"nl": "Returns the text reversed."}},
        {"code": "def h(v):\n    return len(v)", "output": {"nl": "Returns the number of values."}},
    ]),
    Language("Text-to-SQL", "Text-to-SQL Generation", "Text to SQL", [
        {"input": {"context": "CREATE TABLE boats (name TEXT, length INT)", "question": "Names of all boats"},
         "output": {"sql": "SELECT name FROM boats"}},
        {"input": {"context": "CREATE TABLE boats (name TEXT, length INT)", "question": "How many boats?"},
         "output": {"sql": "SELECT COUNT(*) FROM boats"}},
        {"input": {"context": "CREATE TABLE towns (name TEXT)", "question": "All towns"},
         "output": {"sql": "SELECT name FROM towns"}},
    ]),
]  # fmt: skip

LABELS = [
    Language("Sentiment", "Sentiment Classification", "classification", [
        _labelled("Is the text positive or negative?", "What a lovely day!", "Positive"),
        _labelled("Is the text positive or negative?", "The soup was cold.", "Negative"),
        _labelled("Is the text positive or negative?", "I would come again.", "Positive"),
    ]),
    Language("Stance", "Stance Detection", "classification", [
        _stance("More trams, please!", "trams", "favor"),
        _stance("No more noise.", "noise", "against"),
        _stance("Rye bread is best.", "rye bread", "favor"),
    ]),
    Language("Inference", "Natural Language Inference", "multiple choice", [
        _labelled("A follows, B contradicts, C neither?", "It rains. / It is wet outside.", "A"),
        _labelled("A follows, B contradicts, C neither?", "All doors are shut. / One door is open.", "B"),
        _labelled("A follows, B contradicts, C neither?", "He has a dog. / He has a boat.", "C"),
    ]),
    Language("Aspects", "Aspect Category Detection", "multi label classification", [
        _labelled("Which aspects are named?", "Good food, slow service.", "food, service"),
        _labelled("Which aspects are named?", "A fair price.", "price"),
        _labelled("Which aspects are named?", "The food was fine.", "food"),
    ]),
    Language("Persons", "Person Recognition", "ner", [
        _labelled("Which persons are named?", "Ada met Bela in the park.", "Ada, Bela"),
        _labelled("Which persons are named?", "Cato stayed at home.", "Cato"),
        _labelled("Which persons are named?", "The rain stopped when Dora came.", "Dora"),
    ]),
    Language("Terms", "Aspect Term Extraction", "extraction", [
        _labelled("Which terms are judged?", "The soup was great.", "soup"),
        _labelled("Which terms are judged?", "I liked the bread and the tea.", "bread, tea"),
        _labelled("Which terms are judged?", "The chairs are hard.", "chairs"),
    ]),
    Language("Relations", "News Relation Extraction", "relation extraction", [
        _labelled("Relation of Ada and Ask?", "Ada lives in Ask.", "lives in"),
        _labelled("Relation of Brim and Ask?", "Brim is north of Ask.", "north of"),
        _labelled("Relation of Cato and Tern?", "Cato owns the Tern.", "owns"),
    ]),
    Language("Triggers", "Event Trigger Detection", "event detection", [
        _labelled("Which words name events?", "The bridge collapsed.", "collapsed"),
        _labelled("Which words name events?", "They met and signed.", "met, signed"),
        _labelled("Which words name events?", "A boat sank.", "sank"),
    ]),
    Language("Parts-of-Speech", "Part-of-Speech", "parsing", [
        _labelled("Tags of the words?", "cats sleep", "NOUN, VERB"),
        _labelled("Tags of the words?", "red boats", "ADJ, NOUN"),
        _labelled("Tags of the words?", "run fast", "VERB, ADV"),
    ]),
]  # fmt: skip

LANGUAGE = (*QUESTIONS, *TEXTS, *PROGRAMS, *LABELS)
