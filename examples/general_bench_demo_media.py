"""Define the media tasks of General-Bench's demonstration data: pictures, videos, sounds and points, all our own.

The ``prediction`` of an item, if it has one, is the output of an imagined generator. Tasks with files as answers are
scored from it.
"""

from __future__ import annotations

import math
import struct
import wave
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

SIZE = (64, 48)
FRAMES = 5
RATE = 8000
COLOURS = {"red": (205, 45, 45), "blue": (40, 80, 200), "green": (40, 150, 70)}
Array = np.ndarray[Any, Any]


@dataclass
class Folder:
    """A task's folder during writing: ``MODALITY/PARADIGM/NAME`` with the name of its row."""

    path: Path
    task: str
    items: list[dict[str, Any]] = field(default_factory=list)
    predictions: list[Any] = field(default_factory=list)

    def add(self, given: dict[str, Any], output: Any, prediction: Any = None) -> None:
        """Add an item; ``prediction`` is given only if a generator wrote it."""
        self.items.append({"id": len(self.items), "input": given, "output": output})
        self.predictions.append(prediction)

    def file(self, name: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def scene(colour: str, place: tuple[int, int], is_round: bool = False) -> Image.Image:
    """Draw a shape of 14 x 12 pixels with its upper left corner at ``place``."""
    image = Image.new("RGB", SIZE, (238, 238, 232))
    x, y = place
    draw = ImageDraw.Draw(image)
    (draw.ellipse if is_round else draw.rectangle)((x, y, x + 13, y + 11), fill=COLOURS[colour])
    return image


def save(folder: Folder, name: str, image: Image.Image) -> str:
    image.save(folder.file(f"images/{name}"), optimize=True)
    return name


def classification(folder: Folder) -> None:
    for number, colour in enumerate(COLOURS):
        name = save(folder, f"{number}.png", scene(colour, (10 + 12 * number, 16)))
        prompt = f"Which colour is the shape? {', '.join(COLOURS)}."
        folder.add({"image_file": name, "prompt": prompt}, {"text": colour})


def detection(folder: Folder) -> None:
    for number, place in enumerate([(6, 8), (30, 20), (44, 30)]):
        name = save(folder, f"{number}.png", scene("red", place))
        folder.add({"image_file": name, "prompt": "Find the shape."}, {"boxes": [[*place, 14, 12, "shape"]]})


def segmentation(folder: Folder) -> None:
    for number, place in enumerate([(6, 8), (30, 20), (44, 30)]):
        name = save(folder, f"{number}.png", scene("blue", place))
        mask = Image.new("L", SIZE)
        x, y = place
        ImageDraw.Draw(mask).rectangle((x, y, x + 13, y + 11), fill=255)
        mask.save(folder.file(f"images/mask{number}.png"), optimize=True)
        folder.add({"image_file": name, "prompt": "Outline the shape."}, {"mask": f"images/mask{number}.png"})


def captions(folder: Folder) -> None:
    for number, colour in enumerate(COLOURS):
        name = save(folder, f"{number}.png", scene(colour, (20, 16), is_round=True))
        folder.add(
            {"image_file": name, "prompt": "Describe the picture."}, {"text": f"a {colour} disc on a pale ground"}
        )


def restoration(folder: Folder) -> None:
    rng = np.random.default_rng(7)
    for number, colour in enumerate(COLOURS):
        clean = scene(colour, (20, 16))
        noisy = np.clip(np.asarray(clean, np.int16) + rng.integers(-20, 21, (SIZE[1], SIZE[0], 3)), 0, 255)
        clean.save(folder.file(f"images/clean{number}.png"), optimize=True)
        wet = save(folder, f"wet{number}.png", Image.fromarray(noisy.astype(np.uint8)))
        made = Image.fromarray(((np.asarray(clean, np.int16) * 3 + noisy) // 4).astype(np.uint8))
        made.save(folder.file(f"made/{number}.png"), optimize=True)
        given = {"image_file": wet, "prompt": "Remove the rain."}
        folder.add(given, {"image_file": f"images/clean{number}.png"}, f"made/{number}.png")


def frames(folder: Folder, name: str, places: Sequence[tuple[int, int]], colour: str = "green") -> list[str]:
    """Write frames below ``videos`` and return their names as annotations state them."""
    found = []
    for number, place in enumerate(places):
        scene(colour, place).save(folder.file(f"videos/{name}/{number:03d}.png"), optimize=True)
        found.append(f"{name}/{number:03d}.png")
    return found


def path_of(number: int) -> list[tuple[int, int]]:
    return [(4 + 8 * step, 6 + (number * 8 + 3 * step) % 30) for step in range(FRAMES)]


def video_questions(folder: Folder) -> None:
    for number, colour in enumerate(COLOURS):
        files = frames(folder, f"v{number}", path_of(number), colour)
        prompt = "Which colour is the thing that moves? Answer with one word."
        folder.add({"video_file_list": files, "prompt": prompt}, {"text": colour})


def video_captions(folder: Folder) -> None:
    for number, colour in enumerate(COLOURS):
        files = frames(folder, f"v{number}", path_of(number), colour)
        folder.add({"video_file_list": files, "prompt": "Describe the video."}, {"text": f"a {colour} box moves right"})


def tracking(folder: Folder) -> None:
    for number in range(3):
        places = path_of(number)
        frames(folder, f"v{number}", places)
        folder.add({"video_folder": f"v{number}", "prompt": "Track the green box."},
                   {"answer": [[x, y, 14, 12] for x, y in places]})  # fmt: skip


def flow_file(path: Path, values: Array) -> None:
    height, width = values.shape[:2]
    path.write_bytes(struct.pack("<fii", 202021.25, width, height) + values.astype("<f4").tobytes())


def optical_flow(folder: Folder) -> None:
    for number in range(3):
        frames(folder, f"v{number}", path_of(number)[:2])
        truth = np.zeros((12, 16, 2), np.float32)
        truth[3:9, 4:12] = (8.0, 3.0)
        folder.file(f"flows/{number}.flo")
        flow_file(folder.path / f"flows/{number}.flo", truth)
        flow_file(folder.file(f"made/{number}.flo"), truth + np.float32(0.25 * (number + 1)))
        folder.add({"video_folder": f"v{number}", "prompt": "Motion between the frames."},
                   {"flow": f"flows/{number}.flo"}, f"made/{number}.flo")  # fmt: skip


def denoising(folder: Folder) -> None:
    for number in range(2):
        places = path_of(number)
        frames(folder, f"gt{number}", places)
        for step, place in enumerate(places):
            picture = np.asarray(scene("green", place), np.int16) + 4 * (number + 1)
            target = folder.file(f"made/{number}/{step:03d}.png")
            Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8)).save(target, optimize=True)
        folder.add({"pred_dir": f"made/{number}", "gt_dir": f"videos/gt{number}"}, {}, f"made/{number}")


def still_videos(folder: Folder) -> None:
    for number, colour in enumerate(("red", "blue")):
        for step in range(FRAMES):
            scene(colour, (20, 16 + (step % 2) * number)).save(folder.file(f"made/{number}/{step:03d}.png"))
        folder.add({"prompt": f"a {colour} box that does not move"}, {}, f"made/{number}")


def tone(path: Path, pitch: float, seconds: float = 0.25) -> None:
    """Return a fading tone."""
    count = int(RATE * seconds)
    samples = [int(12000 * math.sin(2 * math.pi * pitch * n / RATE) * (1 - n / count)) for n in range(count)]
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, count, "NONE", ""))
        file.writeframes(struct.pack(f"<{count}h", *samples))


def sounds(prompt: str, answers: Sequence[str]) -> Callable[[Folder], None]:
    def write(folder: Folder) -> None:
        for number, answer in enumerate(answers):
            tone(folder.file(f"audios/{number}.wav"), 220.0 * (number + 1))
            folder.add({"audio_file": f"{number}.wav", "prompt": prompt}, {"text": answer})

    return write


def speech(folder: Folder) -> None:
    for number, (said, heard) in enumerate(
        [("the boat is late", "the boat is late"), ("two red carts", "two red cards")]
    ):
        tone(folder.file(f"made/{number}.wav"), 330.0 * (number + 1))
        given = {"prompt": f"Say: {said}"}
        folder.add(given, {"text": said}, {"audio": f"made/{number}.wav", "transcript": heard})


def emotional_speech(folder: Folder) -> None:
    for number in range(2):
        tone(folder.file(f"audios/gt{number}.wav"), 300.0 + 40 * number)
        tone(folder.file(f"made/{number}.wav"), 306.0 + 40 * number)
        folder.add({"prompt": "Say it gladly."}, {"audio_file": f"gt{number}.wav"}, f"made/{number}.wav")


def cloud(seed: int, is_flat: bool = False, shift: float = 0.0) -> Array:
    """Return 200 points on a sphere or on a square."""
    points = np.random.default_rng(seed).normal(size=(200, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    if is_flat:
        points[:, 2] = 0.0
    return (points + shift).astype(np.float32)


def shapes(folder: Folder) -> None:
    for number in range(3):
        np.save(folder.file(f"pointclouds/{number}.npy"), cloud(number, is_flat=number % 2 == 1))
        answer = "plate" if number % 2 else "ball"
        given = {"pointcloud_file": f"{number}.npy", "prompt": "Is it a ball or a plate?"}
        folder.add(given, {"text": answer})


def completion(folder: Folder) -> None:
    for number in range(2):
        whole = cloud(number)
        np.save(folder.file(f"pointclouds/part{number}.npy"), whole[:120])
        np.save(folder.file(f"pointclouds/whole{number}.npy"), whole)
        np.save(folder.file(f"made/{number}.npy"), cloud(number, shift=0.01))
        folder.add({"pointcloud_file": f"part{number}.npy", "prompt": "Complete the points."},
                   {"points": f"pointclouds/whole{number}.npy"}, f"made/{number}.npy")  # fmt: skip


@dataclass(frozen=True)
class Media:
    """A task: its folder, the name of its row, and the function that writes its items."""

    place: str
    task: str
    write: Callable[[Folder], None]


MEDIA = (
    Media("image/comprehension/Sports-Classification", "Sports Image Classification", classification),
    Media("image/comprehension/Sign-Detection", "Traffic Signs Detection", detection),
    Media("image/comprehension/Flood-Segmentation", "Flood Area Segmentation", segmentation),
    Media("image/comprehension/Captioning", "COCO Image Captioning", captions),
    Media("image/generation/Deraining", "Image Deraining", restoration),
    Media("video/comprehension/ColorQA", "Object Color Video Question Answering", video_questions),
    Media("video/comprehension/FoodCaptioning", "Food Video Captioning", video_captions),
    Media("video/comprehension/BallTracking", "Ball Tracking", tracking),
    Media("video/comprehension/SimpleFlow", "Optical Flow in Simple Synthetic Scene", optical_flow),
    Media("video/generation/Denoising", "Video Denoising", denoising),
    Media("video/generation/StaticT2V", "Static Video Generation", still_videos),
    Media("audio/comprehension/SpeechCommand", "Speech Command",
          sounds("Which command is spoken?", ("go", "stop", "left"))),
    Media("audio/comprehension/LongAudioCaptioning", "Long Audio Captioning",
          sounds("Describe the sound.", ("a low tone fades", "a tone fades", "a high tone fades"))),
    Media("audio/generation/TextToSpeech", "TextToSpeech", speech),
    Media("audio/generation/EmotionalSpeech", "EmotionalSpeechSynthesis", emotional_speech),
    Media("3D/comprehension/3d_classification", "3D Furniture Classification", shapes),
    Media("3D/generation/completion", "3D Point Cloud Completion", completion),
)  # fmt: skip
