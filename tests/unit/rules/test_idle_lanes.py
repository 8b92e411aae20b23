"""Which loops idle lanes take part in: those in which what they make reaches nothing."""

import pytest

from tests.unit.rules.kernels import resolved, subject
from tile2cu.core.decisions import IN_REGISTERS, LAYOUT

_KERNEL = """
x = T.alloc_fragment(({rows}, {columns}), "{dtype}")
y = T.alloc_fragment(({rows}, {columns}), "{dtype}")
S = T.alloc_shared(({rows}, {columns}), "{dtype}")
total = T.alloc_fragment(({rows},), "{dtype}")
for i, j in T.Parallel({rows}, {columns}):
    {body}
T.reduce_sum(y, total, dim=1)
""".strip()


def asked(body: str, *, rows: int = 8, columns: int = 72, dtype: str = "float32") -> bool:
    text = _KERNEL.format(rows=rows, columns=columns, dtype=dtype, body=body)
    context = resolved(text, target="cuda:sm_90a", threads=128)
    return context.facts.get(subject(context, 5), IN_REGISTERS) is True


@pytest.mark.parametrize(
    "body", ["y[i, j] = x[i, j] / 3.0", "y[i, j] += x[i, j] * total[i]", "y[i, j] = T.exp(x[i, j])"]
)
def test_arithmetic_of_registers(body: str) -> None:
    assert asked(body)
    assert not asked(body, columns=128), "no lane is idle"


@pytest.mark.parametrize(
    ("body", "dtype"),
    [
        ("y[i, j] = S[i, j]", "float32"),
        ("S[i, j] = x[i, j]", "float32"),
        ("y[i, j] = x[i, j] // (x[i, j] + 1)", "int32"),
        ("y[i, j] = x[i, j] % (x[i, j] + 1)", "int32"),
    ],
)
def test_memory_rows_and_quotients_are_for_lanes_with_elements(body: str, dtype: str) -> None:
    assert not asked(body, dtype=dtype)


def test_rows_that_do_not_fill_a_warp_are_neighbours() -> None:
    text = _KERNEL.format(rows=8, columns="{columns}", dtype="float32", body="y[i, j] = x[i, j]")
    for rows, columns in ((2, 72), (1, 128), (1, 256)):
        context = resolved(text.format(columns=columns), target="cuda:sm_90a", threads=128)
        assert context.facts.get(subject(context, "y"), LAYOUT).rows == rows
