"""Builds and runs the conformance program: `python tests/cpu/conformance/run.py --device cuda|cpu --out FILE`.

The program runs one micro-kernel for each primitive of headers/tl and writes what they gave to FILE. Files of a GPU
(sm_90a, nvcc on PATH) and of the CPU engine must be equal byte for byte; `--expect OTHER` compares. `--build FILE`
only builds, for a machine without a compiler. Exits 1 when anything fails or differs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = Path(__file__).resolve().with_name("main.cu")
sys.path.insert(0, str(ROOT / "runtime"))


def build_for_gpu(program: Path, nvcc: str) -> None:
    command = [nvcc, "-std=c++17", "-O2", "-gencode", "arch=compute_90a,code=sm_90a", "-I", str(ROOT / "headers")]
    subprocess.run([*command, "-cudart", "static", str(SOURCE), "-o", str(program)], check=True)


def build_for_engine(program: Path, _nvcc: str) -> None:
    from tile2cu_runtime.compile import host_flags
    from tile2cu_runtime.compilers import find_gxx
    from tile2cu_runtime.engine import build_engine

    gxx, engine = find_gxx().path, build_engine()
    command = [gxx, "-x", "c++", *host_flags(check=True), "-I", str(ROOT / "headers")]
    subprocess.run([*command, "-c", str(SOURCE), "-o", f"{program}.o"], check=True)
    subprocess.run([gxx, f"{program}.o", str(engine), f"-Wl,-rpath,{engine.parent}", "-o", str(program)], check=True)


def first_difference(one: bytes, other: bytes) -> str | None:
    if one == other:
        return None
    position = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"{len(one)} and {len(other)} bytes; the first difference is at byte {position}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), required=True)
    parser.add_argument("--out", type=Path, help="the file that receives the outputs")
    parser.add_argument("--expect", type=Path, help="a file of the other device, to compare with")
    parser.add_argument("--build", type=Path, help="where to put the program; it is not run")
    parser.add_argument("--nvcc", default="nvcc")
    options = parser.parse_args()
    build = build_for_gpu if options.device == "cuda" else build_for_engine
    if options.build:
        build(options.build, options.nvcc)
        return 0
    if not options.out:
        parser.error("--out or --build is needed")
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "conformance"
        build(program, options.nvcc)
        status = subprocess.run([program, options.out], check=False).returncode
    if status == 0 and options.expect:
        difference = first_difference(options.out.read_bytes(), options.expect.read_bytes())
        print(difference or "equal, byte for byte")
        status = difference is not None
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
