"""The C interface of an emitted kernel, from a C program on the CPU engine: what it refuses, and that queries agree."""

import subprocess
from pathlib import Path

import pytest

from tile2cu_runtime.compile import host_flags
from tile2cu_runtime.engine import build_engine

ROOT = Path(__file__).resolve().parents[2]

CALLER = """\
#include <stdio.h>
#include "gemm_relu.h"

static _Alignas(16) unsigned short a[256], b[256], c[256];  /* a row of zeros is float16, whatever its length */

static int expect(tl_status found, tl_status expected, int line) {
  if (found == expected) return 0;
  printf("line %d: %s, expected %s\\n", line, tl_status_string(found), tl_status_string(expected));
  return 1;
}
/* A launch answers what the query answers, as long as its pointers are fine. */
static int both(int m, int k, int n, tl_status expected, int line) {
  return expect(gemm_relu_supports(m, n, k, TL_CURRENT_DEVICE), expected, line) +
         expect(gemm_relu(a, b, c, m, n, k, NULL, 0, NULL), expected, line);
}

int main(void) {
  int wrong = 0;
  wrong += both(16, 8, 16, TL_OK, __LINE__);
  wrong += both(0, 8, 16, TL_OK, __LINE__);
  wrong += both(16, -8, 16, TL_INVALID_SIZE, __LINE__);
  wrong += both(128 * 65535 + 1, 8, 0, TL_INVALID_SIZE, __LINE__);
  wrong += both(2, 4, 16, ROWS, __LINE__);
  wrong += both(2, 8, 15, ROWS, __LINE__);
  wrong += expect(gemm_relu_supports(16, 16, 8, 0), TL_OK, __LINE__);
  wrong += expect(gemm_relu_supports(16, 16, 8, 3), TL_WRONG_DEVICE, __LINE__);
  wrong += expect(gemm_relu((char*)a + 2, b, c, 16, 8, 8, NULL, 0, NULL), TL_MISALIGNED, __LINE__);
  wrong += expect(gemm_relu(a, b, (char*)c + 8, 16, 8, 8, NULL, 0, NULL), TL_MISALIGNED, __LINE__);
  if (gemm_relu_workspace_size(16, 16, 8) != 0) wrong += 1;
  return wrong;
}
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("target", "rows"), [("sm_80", "TL_OK"), ("sm_90a", "TL_NOT_SUPPORTED")])
def test_a_c_program_calls_a_kernel(gxx: str, target: str, rows: str, tmp_path: Path) -> None:
    (tmp_path / "caller.c").write_text(CALLER, encoding="utf-8")
    folder, engine = ROOT / "emitted/cuda" / target, build_engine()
    includes = [f"-I{ROOT / 'headers'}", f"-I{folder}"]
    caller = [gxx, "-x", "c", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-DROWS={rows}", "-c", "caller.c"]
    subprocess.run([*caller, *includes, "-o", "caller.o"], cwd=tmp_path, check=True)
    kernel = [gxx, "-x", "c++", *host_flags(check=False), "-Wunused-parameter", "-Werror", "-c"]
    subprocess.run([*kernel, *includes, str(folder / "gemm_relu.cu"), "-o", "kernel.o"], cwd=tmp_path, check=True)
    link = [gxx, "caller.o", "kernel.o", str(engine), f"-Wl,-rpath,{engine.parent}", "-o", "caller"]
    subprocess.run(link, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "caller"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
