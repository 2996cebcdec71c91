"""Facts from a processor about pictures are added to the media of a request."""

from __future__ import annotations

from lmms_eval.api.request import SentMedia, Sight

PICTURE = SentMedia("image", sha256="a", width=64, height=48)
FILM = SentMedia("video", sha256="b", width=32, height=24, frames=(0, 1, 2), times=(0.0, 0.5, 1.0))
SOUND = SentMedia("audio", sha256="c")


def test_sizes_and_tokens_go_to_their_media() -> None:
    sizes = ((56, 42), *[(28, 28)] * 3)
    found = Sight(sizes, 30, (12, 6, 6, 6)).of([SOUND, PICTURE, FILM])
    assert [(one.processed, one.tokens) for one in found] == [((), None), ((56, 42), 12), ((28, 28), 18)]
    assert found[1].to_dict()["processed"] == [56, 42] and SentMedia.from_dict(found[1].to_dict()) == found[1]


def test_a_sum_of_tokens_is_shared_by_pictures() -> None:
    found = Sight(tokens=10).of([PICTURE, FILM])
    assert [one.tokens for one in found] == [3, 7] and sum(one.tokens or 0 for one in found) == 10


def test_what_does_not_fit_the_media_is_not_told() -> None:
    (found,) = Sight(((1, 1), (2, 2)), None).of([PICTURE])
    assert (found.processed, found.tokens) == ((), None)
    assert Sight(tokens=5).of([SOUND]) == (SOUND,)


def test_the_same_picture_stays_the_same_whatever_was_made_of_it() -> None:
    assert Sight(tokens=5).of([PICTURE])[0] == PICTURE
