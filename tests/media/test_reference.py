from __future__ import annotations

import base64
import hashlib
import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from lmms_eval.errors import MediaError
from lmms_eval.media import digest, resolve
from lmms_eval.media import reference as reference_module
from tests.cases import for_each
from tests.media.draw import encoded, picture


@pytest.fixture
def png(tmp_path: Path) -> Path:
    path = tmp_path / "a folder" / "one.png"
    path.parent.mkdir()
    path.write_bytes(encoded(picture(), "PNG"))
    return path


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(png: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(png.parent))) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


def test_every_form_of_one_picture_gives_the_same_bytes(png: Path) -> None:
    data = png.read_bytes()
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    forms = [
        png, str(png), png.as_uri(), data, bytearray(data), url, {"bytes": data, "path": None}, {"path": str(png)},
        {"bytes": None, "path": str(png)}, {"url": str(png)}, {"type": "image", "url": url},
    ]  # fmt: skip
    assert {resolve(form).read_bytes() for form in forms} == {data}
    assert {digest(form) for form in forms} == {hashlib.sha256(data).hexdigest()}
    assert resolve(resolve(png)).path == png
    assert resolve(url).mime == "image/png"


def test_roots_are_tried_in_order_and_named_when_nothing_is_found(png: Path, tmp_path: Path) -> None:
    roots = [tmp_path / "elsewhere", png.parent]
    assert resolve("one.png", roots).path == png
    assert resolve("one.png", png.parent).path == png
    with pytest.raises(MediaError) as caught:
        resolve("two.png", roots)
    assert "two.png" in str(caught.value) and str(roots[0]) in str(caught.value) and str(roots[1]) in str(caught.value)


def test_without_a_root_the_current_folder_counts(png: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(png.parent)
    assert resolve("one.png").path == png


@for_each(
    "value",
    [
        "", "no such file.png", "x" * 5000, 7, {}, {"caption": "x"}, "data:image/png;base64,@@@",
        "data:image/png;base64", {"bytes": None, "path": None},
    ],
)  # fmt: skip
def test_what_is_no_media_is_refused(value: object) -> None:
    with pytest.raises(MediaError):
        resolve(value)


def test_plain_data_url_is_percent_decoded() -> None:
    assert resolve("data:text/plain,a%20b").read_bytes() == b"a b"


def test_digest_of_a_file_follows_its_content(png: Path) -> None:
    first = digest(png)
    png.write_bytes(encoded(picture("L"), "PNG"))
    os.utime(png, ns=(1, 1))
    assert digest(png) == hashlib.sha256(png.read_bytes()).hexdigest() != first


def test_digest_of_a_file_is_read_once(png: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = digest(png)

    def refuse(_: Path) -> bytes:
        raise AssertionError("read again")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert digest(png) == first


def test_pictures_in_memory_differ_by_mode_size_pixels_and_palette() -> None:
    grey = picture("L")
    variants = [grey, grey.convert("RGB"), picture("L", (30, 40)), picture("L", (41, 30))]
    palette = picture("P")
    other = palette.copy()
    other.putpalette(list(reversed(palette.getpalette() or [])))
    variants += [palette, other]
    assert len({digest(image) for image in variants}) == len(variants)
    assert digest(grey) == digest(grey.copy())


def test_digest_of_sounds() -> None:
    samples = np.arange(8, dtype=np.float32)
    one = digest({"array": samples, "sampling_rate": 8000})
    assert one == digest({"array": samples.copy(), "sampling_rate": 8000})
    assert one != digest({"array": samples, "sampling_rate": 16000})
    assert one != digest({"array": samples.astype(np.float64), "sampling_rate": 8000})


def test_remote_url_is_fetched_when_read(server: str, png: Path) -> None:
    ref = resolve(f"{server}/one.png?key=secret")
    assert ref.kind == "url" and "secret" not in ref.describe()
    assert ref.read_bytes() == png.read_bytes()
    assert digest(ref) == digest(f"{server}/one.png?key=secret") != digest(f"{server}/one.png")


def test_remote_failure_names_the_address_without_its_query(server: str) -> None:
    with pytest.raises(MediaError, match="404") as caught:
        resolve(f"{server}/missing.png?key=secret").read_bytes()
    assert "missing.png" in str(caught.value) and "secret" not in str(caught.value)


def test_remote_size_is_bounded(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_module, "FETCH_MAX_BYTES", 10)
    with pytest.raises(MediaError, match="larger than 10 bytes"):
        resolve(f"{server}/one.png").read_bytes()


def test_a_decoder_object_of_a_hub_feature_becomes_an_array() -> None:
    class Samples:
        sample_rate = 8000

        class data:
            @staticmethod
            def numpy() -> np.ndarray:
                return np.zeros((1, 4), np.float32)

    class Decoder:
        def get_all_samples(self) -> type[Samples]:
            return Samples

    ref = resolve(Decoder())
    assert ref.kind == "array" and ref.sampling_rate == 8000 and ref.array.shape == (1, 4)


def test_bytes_of_a_picture_in_memory_are_refused() -> None:
    with pytest.raises(MediaError, match="no encoded bytes"):
        resolve(picture()).read_bytes()
