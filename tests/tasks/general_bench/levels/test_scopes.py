import pytest

from lmms_eval.errors import UsageError
from lmms_eval.tasks.general_bench.levels.paper import find_scope
from tests.cases import for_each


@for_each(
    ("text", "name", "rows", "levels"),
    [
        ("a", "A", 699, (2, 3, 4, 5)),
        ("B:image", "B:Image", 316, (2, 3, 4)),
        ("b: Image + 3d", "B:Image+3D", 368, (2, 3, 4)),
        ("B:Audio+NLP", "B:Audio+NLP", 159, (2, 3, 4, 5)),
        ("C:video-generation", "C:Video-Generation", 46, (2, 3)),
        ("D:i-c-3", "D:I-C-3", 2, (2, 3)),
    ],
)
def test_scopes(text, name, rows, levels):
    scope = find_scope(text)
    assert (scope.name, sum(map(len, scope.rows.values())), scope.levels) == (name, rows, levels)


@for_each("text", ["", "E", "A:Image", "B", "B:Smell", "C:NLP", "C:Image", "D:L-1", "D:X-1", "B:NLP"])
def test_what_is_no_scope(text):
    with pytest.raises(UsageError):
        find_scope(text)
