"""#line: a reader of the directives finds every line of code where the map says it comes from."""

import re
from pathlib import Path

import pytest

from tile2cu.api import emit_text
from tile2cu.core.origin import EmitOptions
from tile2cu.emitter.line_directives import with_line_directives
from tile2cu.targets import find

ROOT = Path(__file__).resolve().parents[3]


def as_compiled(text: str, own: str) -> list[tuple[int, str, int, str]]:
    """Each line of code: its number, and the file and line that a compiler gives it."""
    found, place = [], (own, 1)
    for number, line in enumerate(text.splitlines(), 1):
        if directive := re.fullmatch(r'#line (\d+) "(.*)"', line):
            place = (directive[2], int(directive[1]))
            continue
        if line.strip() and not line.lstrip().startswith("//"):
            found.append((number, *place, line))
        place = (place[0], place[1] + 1)
    return found


def test_a_directive_stands_where_the_place_changes() -> None:
    text, lines = with_line_directives("a\nb(\n  c);\nd\ne\n", [(2, 20), (4, 21), (5, 0)], python="k.py", own="k.cu")
    assert text == 'a\n#line 20 "k.py"\nb(\n#line 20 "k.py"\n  c);\nd\n#line 8 "k.cu"\ne\n'
    assert lines == [(2, 20), (6, 21), (7, 0)]


@pytest.mark.parametrize(("example", "target"), [("attention.py", "cuda:sm_80"), ("gemm_relu.py", "cuda:sm_90a")])
def test_every_line_has_the_place_that_the_map_gives_it(example: str, target: str) -> None:
    path = ROOT / "examples" / example
    bindings = {"is_causal": True} if example == "attention.py" else {}
    usual, marked = (
        emit_text(path, kernel=None, target=find(target), bindings=bindings, options=EmitOptions(line=line))[0]  # type: ignore[arg-type]
        for line in ("off", "python")
    )
    own = f"{usual.kernel}.cu"
    plain = [line for line in usual.source.splitlines()[6:] if line.strip()]
    assert [line for line in marked.source.splitlines()[6:] if line.strip() and line[:5] != "#line"] == plain
    import json

    starts = json.loads(marked.manifest)["lines"]
    for number, file, line, code in as_compiled(marked.source, own):
        python = next((py for text, py in reversed(starts) if text <= number), 0)
        assert (file, line) == ((path.name, python) if python else (own, number)), code
    assert any(file == path.name for _, file, _, _ in as_compiled(marked.source, own))
