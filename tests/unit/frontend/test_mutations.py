"""Damaged copies of the examples are accepted or refused with a diagnostic; nothing else is ever raised."""

import random
import re
from pathlib import Path

import pytest

from tile2cu.core.errors import Tile2CuError
from tile2cu.frontend import programs

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
NAMES = ("vector_add", "row_softmax", "gemm_relu", "gemm_relu_eager", "attention")
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
COPIES = 24  # of each example; tests/fuzz damages more at night


@pytest.mark.parametrize("name", NAMES)
def test_damaged_examples(name: str) -> None:
    tokens = TOKEN.findall((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))
    words = sorted({token for token in tokens if not token.isspace()})
    places = [at for at, token in enumerate(tokens) if not token.isspace()]
    dice = random.Random(name)
    refused = 0
    for _ in range(COPIES):
        damaged = list(tokens)
        damaged[dice.choice(places)] = dice.choice(["", *words])
        try:
            programs(Path("damaged.py"), "".join(damaged), kernel=None, bindings={})
        except Tile2CuError as error:
            refused += 1
            assert error.render().startswith("error[T2C-F0")
    assert refused > COPIES // 4
