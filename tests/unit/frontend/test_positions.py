"""Where nodes stand, against LibCST's own provider."""

from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from tile2cu.frontend.parse import _positions

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples").glob("*.py"))
ODD = (
    "",
    "\n\n",
    "x = 1",
    "# a comment alone",
    'def f(a, *, b=(1,\n    2)):  # here\n  """text\n  of two lines"""\n\n  return (a if b else\n    -a)\n# end\n',
    "if x:\r\n\ty = [\r\n\t\ti for i in x\r\n\t]\r\nelse:\r\n\tpass\r\n",
    "with a as (b), c:\n    x[1:2, ...] += lambda: (yield)\n",
    "@d\n\n# between\n@e(1)\nclass C(D, metaclass=E): pass; pass\n",
)


@pytest.mark.parametrize(
    "text", [*ODD, *(path.read_text(encoding="utf-8") for path in EXAMPLES)], ids=range(len(ODD) + len(EXAMPLES))
)
def test_nodes_stand_where_libcst_says(text: str) -> None:
    module = cst.parse_module(text)
    expected = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    found = _positions(module)
    assert len(found) == len(expected)
    for node, place in expected.items():
        assert found[node] == (place.start.line, place.start.column, place.end.line, place.end.column), node
