from __future__ import annotations

import copy
import io
import json
import random
from pathlib import Path
from typing import Any

import datasets
import pytest
from PIL import Image

from lmms_eval.errors import MediaError
from lmms_eval.tasks.data.documents import (
    Documents,
    decode,
    decode_image,
    document_hash,
    holds,
    is_media,
    pictures,
    plain,
    plain_row,
)
from lmms_eval.tasks.data.hub import DatasetSource
from lmms_eval.tasks.data.sources import ParquetSource
from tests.cases import for_each


def png(colour: str = "red", size: tuple[int, int] = (3, 2)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def made() -> datasets.Dataset:
    features = datasets.Features(
        {
            "question": datasets.Value("string"),
            "image": datasets.Image(),
            "views": datasets.Sequence(datasets.Image()),
            "nested": {"picture": datasets.Image(), "name": datasets.Value("string")},
            "raw": datasets.Image(decode=False),
        }
    )
    row = {
        "question": "q",
        "image": {"bytes": png(), "path": "a.png"},
        "views": [{"bytes": png("blue"), "path": None}, {"bytes": png("green"), "path": None}],
        "nested": {"picture": {"bytes": png("black"), "path": None}, "name": "n"},
        "raw": {"bytes": png("white"), "path": None},
    }
    return datasets.Dataset.from_list([row, {**row, "question": "r", "image": None}], features=features)


@pytest.fixture(params=["parquet", "datasets"])
def documents(request: pytest.FixtureRequest, made: datasets.Dataset, tmp_path: Path) -> Documents:
    if request.param == "datasets":
        return Documents(DatasetSource(made, "made"))
    path = tmp_path / "d.parquet"
    made.to_parquet(str(path), batch_size=1)
    return Documents(ParquetSource([path]))


def test_rows_equal_those_of_datasets(documents: Documents, made: datasets.Dataset) -> None:
    for number in range(2):
        own, theirs = documents[number], made[number]
        assert list(own) == list(theirs)
        assert own["question"] == theirs["question"]
        assert own["raw"] == theirs["raw"]
        assert [picture.tobytes() for picture in own["views"]] == [picture.tobytes() for picture in theirs["views"]]
        assert own["nested"]["picture"].tobytes() == theirs["nested"]["picture"].tobytes()
    assert documents[0]["image"].tobytes() == made[0]["image"].tobytes()
    assert documents[1]["image"] is None


def test_the_text_view_leaves_media_out(documents: Documents) -> None:
    view = documents.text_view(0)
    assert list(view) == ["question", "nested"]
    assert documents.media_columns == ("image", "views", "raw")
    with pytest.raises(KeyError):
        view["image"]


def test_nothing_is_decoded_before_it_is_read(documents: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[Any] = []
    monkeypatch.setattr("lmms_eval.tasks.data.documents.decode_image", lambda value, mode, where: decoded.append(where))
    document = documents[0]
    assert document["question"] == "q"
    assert "image" in document and len(document) == 5 and decoded == []
    document["image"], document["image"]
    assert len(decoded) == 1  # and decoded once


def test_every_way_of_reading_decodes(documents: Documents) -> None:
    readers = [
        lambda d: d["image"],
        lambda d: d.get("image"),
        lambda d: dict(d)["image"],
        lambda d: {**d}["image"],
        lambda d: dict(d.items())["image"],
        lambda d: list(d.values())[1],
        lambda d: d.copy()["image"],
        lambda d: copy.deepcopy(d)["image"],
        lambda d: d.pop("image"),
        lambda d: d.setdefault("image", 0),
        lambda d: (d | {"x": 1})["image"],
        lambda d: ({"x": 1} | d)["image"],
    ]
    for reader in readers:
        assert reader(documents[0]).size == (3, 2)
    assert documents[0].get("no", 7) == 7
    assert isinstance(documents[0], dict)
    assert documents.text_view(1) == documents.text_view(1) != documents.text_view(0)


def test_documents_are_a_sequence(documents: Documents) -> None:
    assert len(documents) == 2
    assert documents[-1]["question"] == "r"
    assert [document["question"] for document in documents[0:2]] == ["q", "r"]
    with pytest.raises(IndexError, match="has 2 documents, not one numbered 5"):
        documents[5]


def test_pictures_are_upright_and_converted() -> None:
    image = Image.new("RGB", (4, 2), "red")
    exif = Image.Exif()
    exif[274] = 6
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", exif=exif)
    assert decode_image({"bytes": buffer.getvalue(), "path": None}, None, "here").size == (2, 4)
    assert decode_image({"bytes": png(), "path": None}, "L", "here").mode == "L"
    assert decode_image({"bytes": None, "path": "https://host/x.png"}, None, "here") == "https://host/x.png"
    with pytest.raises(MediaError, match="here: picture in the data cannot be read"):
        decode_image({"bytes": b"no picture", "path": None}, None, "here")
    with pytest.raises(MediaError, match=r"here: picture /no/file\.png"):
        decode_image({"bytes": None, "path": "/no/file.png"}, None, "here")


@for_each(
    ("feature", "media", "decoded"),
    [
        ({"_type": "Image"}, True, True),
        ({"_type": "Audio"}, True, True),
        ([{"_type": "Image"}], True, True),
        ({"_type": "Sequence", "feature": {"_type": "Image"}}, True, True),
        ({"_type": "List", "feature": {"_type": "Audio"}}, False, True),
        ({"a": {"_type": "Image"}}, False, True),
        ({"_type": "Json"}, False, True),
        ({"_type": "Image", "decode": False}, True, False),
        ({"_type": "Value", "dtype": "string"}, False, False),
        ({"_type": {"_type": "Value", "dtype": "string"}}, False, False),
        (None, False, False),
    ],
)
def test_types_of_columns(feature: Any, media: bool, decoded: bool) -> None:
    assert is_media(feature) is media
    assert holds(feature) is decoded


def test_sequences_of_structs_are_stored_as_structs_of_lists() -> None:
    feature = {"_type": "Sequence", "feature": {"x": {"_type": "Json"}, "y": {"_type": "Value", "dtype": "int64"}}}
    assert decode(feature, {"x": ["[1]", "{}"], "y": [1, 2]}, "here") == {"x": [[1], {}], "y": [1, 2]}


def test_sounds_are_decoded(tmp_path: Path) -> None:
    import struct
    import wave

    path = tmp_path / "tone.wav"
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(struct.pack("<4h", 0, 16384, -16384, 0))
    value = decode({"_type": "Audio"}, {"bytes": path.read_bytes(), "path": "tone.wav"}, "here")
    assert (value["path"], value["sampling_rate"]) == ("tone.wav", 8000)
    assert [round(float(sample), 2) for sample in value["array"]] == [0.0, 0.5, -0.5, 0.0]


def test_hashes_follow_the_content(documents: Documents) -> None:
    first, second = documents.stored(0), documents.stored(1)
    assert document_hash(plain_row(first)) == document_hash(plain_row(documents.stored(0)))
    assert document_hash(plain_row(first)) != document_hash(plain_row(second))
    other = {**first, "image": {"bytes": png("yellow"), "path": "a.png"}}
    assert document_hash(plain_row(first)) != document_hash(plain_row(other))
    renamed = {**first, "image": {"bytes": png(), "path": "b.png"}}
    assert document_hash(plain_row(first)) == document_hash(
        plain_row(renamed)
    )  # the content counts where there is content


def test_plain_values_are_json() -> None:
    import datetime

    import numpy as np

    value = {"a": b"x", "b": datetime.date(2024, 1, 2), "c": np.arange(2), "d": float("nan"), "e": (1, None), 3: True}
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == {
        "a": "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
        "b": "2024-01-02", "c": [0, 1], "d": "nan", "e": [1, None], "3": True,
    }  # fmt: skip


def test_up_to_four_pictures_are_named(documents: Documents) -> None:
    found = pictures(documents.stored(0), documents.source.features)
    assert len(found) == 4 and all(name.startswith("sha256:") for name in found)
    row = {"image_path": "x/y.JPG", "url": "https://h/p.png?x=1", "note": "see a.txt", "more": ["z.webp", 3]}
    assert pictures(row, {}) == ("x/y.JPG", "https://h/p.png?x=1", "z.webp")


def test_parquet_media_are_read_by_row_group(tmp_path: Path) -> None:
    features = datasets.Features({"n": datasets.Value("int64"), "image": datasets.Image()})
    rows = [{"n": n, "image": {"bytes": png(size=(n + 1, 1)), "path": None}} for n in range(7)]
    path = tmp_path / "g.parquet"
    datasets.Dataset.from_list(rows, features=features).to_parquet(str(path), batch_size=2)
    documents = Documents(ParquetSource([path, path]))
    assert [documents[n]["image"].size[0] for n in (13, 0, 6, 7, 3)] == [7, 1, 7, 1, 4]


def test_cells_and_media_of_rows(documents: Documents) -> None:
    source = documents.source
    assert source.cells("question", [1, 0]).to_pylist() == ["r", "q"]
    assert source.cells("question", range(2)).to_pylist() == ["q", "r"]
    assert source.cells("question", []).to_pylist() == []
    exact = isinstance(source, DatasetSource)
    sizes = [[len(png("blue")), len(png("green"))]] * 2
    views = source.media("views", [0, 1])
    assert views == sizes if exact else [len(row) for row in views] == [2, 2]
    assert not exact or source.media("image", [1, 0]) == [[], [len(png())]]
    assert all(isinstance(size, int | float) and size >= len(png()) / 2 for row in views for size in row)


def test_media_of_a_selection_are_those_of_its_rows(made: datasets.Dataset) -> None:
    stored = made.with_format("arrow")[0].to_pylist()[0]
    rows = [{**stored, "image": {"bytes": png(size=(n, n)), "path": None}} for n in (1, 40, 9)]
    chosen = datasets.Dataset.from_list(rows, features=made.features).select([2, 0, 1])
    source = DatasetSource(chosen, "chosen")
    assert source.media("image", [0, 2]) == [[len(png(size=(9, 9)))], [len(png(size=(40, 40)))]]
    assert source.cells("question", [2]).to_pylist() == ["q"]


def test_parquet_media_weigh_the_mean_of_their_row_group(tmp_path: Path) -> None:
    features = datasets.Features({"image": datasets.Image()})
    noise = [random.Random(n).randbytes(1_000 * (1 + n // 2)) for n in range(4)]
    made = datasets.Dataset.from_list([{"image": {"bytes": data, "path": None}} for data in noise], features=features)
    made.to_parquet(str(tmp_path / "g.parquet"), batch_size=2)
    (first,), (second,), (third,) = ParquetSource([tmp_path / "g.parquet"]).media("image", [0, 1, 3])
    assert first == second == pytest.approx(1_000, rel=0.2) and third == pytest.approx(2_000, rel=0.2)
