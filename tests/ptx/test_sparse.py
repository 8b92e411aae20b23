"""nvcc's PTX of T.gemm_sp on the PTX machine, whose reading of the manual is another than the CPU engine's."""

from pathlib import Path

import pytest

from tests.host.test_sparse import run


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(("dtype", "meta"), [("float16", "int16"), ("bfloat16", "int8"), ("int8", "int32")])
def test_products(dtype: str, meta: str, tmp_path: Path) -> None:
    run(tmp_path, dtype, meta, "", target="cuda:sm_80", device="ptx")
