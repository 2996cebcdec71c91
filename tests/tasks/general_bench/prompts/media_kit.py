"""Items of tasks with media."""

from pathlib import Path

from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.items import Item, MediaInput


def an_item(task, form="text", prompt="", media=(), reference=None, folder=Path(), raw=None):
    return Item(
        id=1,
        facts=find_task(task),
        form=form,
        prompt=prompt,
        media=tuple(media),
        reference=reference,
        folder=Path(folder),
        prediction_folder=Path(folder),
        raw=raw or {},
    )


def a_picture(path, size=(64, 48), colour=(200, 30, 30)):
    from PIL import Image

    Image.new("RGB", size, colour).save(path)
    return path


def frames(folder, count, size=(64, 48)):
    """A folder of frames whose red is their number."""
    folder.mkdir(exist_ok=True)
    for number in range(count):
        a_picture(folder / f"{number}.png", size, (number % 256, 0, 0))
    return MediaInput("frames", (folder,))


def a_video(path, count, size=(64, 48)):
    """A video whose frames' red is their number times four."""
    import av
    import numpy as np

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=8)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for number in range(count):
            pixels = np.zeros((size[1], size[0], 3), dtype=np.uint8)
            pixels[..., 0] = 4 * number
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    return MediaInput("video", (path,))
