"""What docstrings say of softmax weights: the exponent of each is one FMA in machine code, by nvcc's defaults."""

import re

import pytest

from tests.compile.test_held import EMITTED, compiled

_WRITES = re.compile(r"\b(FFMA|FMUL|FADD|MUFU\.EX2)(?:\.\w+)*\s+(R\d+),\s*(.*?)\s*;")


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("name", ["attention", "flash_decoding", "mla_decode"])
def test_exponents_of_weights_are_one_fma(nvcc: str, nvdisasm: str, name: str) -> None:
    """The operand of each ex2 is an FMA, or a product, as for the factor of a row, and no difference of products."""
    source = (EMITTED / f"{name}.cu").read_text(encoding="utf-8")
    assert "(one FMA, the compilers' default)" in source.replace("\n// ", " ")
    _, machine_code = compiled(nvcc, nvdisasm, EMITTED / f"{name}.cu")
    of_kernels = [each for each in machine_code.split(".section\t.text.")[1:] if "combine" not in each.split(",")[0]]
    assert len(of_kernels) == 1
    last: dict[str, str] = {}
    exponents: list[str] = []
    for operation, to, operands in _WRITES.findall(of_kernels[0]):
        if operation == "MUFU.EX2":
            exponents.append(last[operands.strip("-|")])
        last[to] = operation
    assert exponents.count("FFMA") >= 32 and set(exponents) <= {"FFMA", "FMUL"}
