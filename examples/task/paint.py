"""Draw the pictures of the task and write its documents to ``data/`` next to this file."""

import json
from pathlib import Path

from PIL import Image, ImageDraw

DATA = Path(__file__).parent / "data"
COLOURS = {"red": (220, 30, 30), "green": (20, 150, 60), "blue": (40, 60, 200), "yellow": (240, 220, 40)}
MIDDLE = (20, 12, 44, 36)

DATA.mkdir(exist_ok=True)
documents = []
for name, colour in COLOURS.items():
    picture = Image.new("RGB", (64, 48), "white")
    ImageDraw.Draw(picture).ellipse(MIDDLE, fill=colour)
    picture.save(DATA / f"{name}_disc.png")
    documents.append({"image": f"data/{name}_disc.png", "question": "Which colour is the disc?", "answer": name})
picture = Image.new("RGB", (64, 48), COLOURS["blue"])
ImageDraw.Draw(picture).rectangle(MIDDLE, fill=COLOURS["yellow"])
picture.save(DATA / "square.png")
documents.append(
    {"image": "data/square.png", "question": "Which colour is the square in the middle?", "answer": "Yellow"}
)
(DATA / "colours.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents), encoding="utf-8")
