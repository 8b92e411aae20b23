"""The style cute beside the style tl: bits, time, nvcc's seconds, lines, registers, spills.

    python benchmarks/styles.py emit FOLDER [CASE ...]     writes the sources of both styles; needs tile2cu
    python benchmarks/styles.py goldens FOLDER             copies those of emitted/, of every source of the style cute
    python benchmarks/styles.py run FOLDER                 on the GPU's machine: torch, nvcc and CUTLASS_PATH
    python benchmarks/styles.py table FOLDER               the table of docs/lab/cute.md, from FOLDER/rows.json

Every case runs at its sizes and at ragged ones, on the same arguments in both styles, and its outputs' bytes are
compared. Times are of CUDA graphs in one process, medians of 9 rounds whose order alternates; both styles read the
same tensors.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STYLES = ("tl", "cute")
HOPPER, AMPERE = "cuda:sm_90a", "cuda:sm_80"
RAGGED = {"M": 333, "N": 520, "K": 544, "batch": 3, "seq_len": 517, "heads": 4, "tokens": 1024, "tokens_k": 1024}
RAGGED |= {"max_seqlen": 300, "kv_heads": 3, "max_len": 1000, "seqlen": 512, "vocab": 3001, "dim_v": 64, "rows": 128}


@dataclass(frozen=True)
class Case:
    """An example with its bindings and sizes. `special` are index tensors: ("steps", a size), ("full", a size) or
    ("below", a size); a graph has `calls` of them."""

    name: str
    example: str
    sizes: Mapping[str, int]
    bindings: Mapping[str, object] = field(default_factory=dict)
    target: str = HOPPER
    kernel: str | None = None
    special: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    calls: int = 10
    ragged: Mapping[str, int] = field(default_factory=dict)  # where a ragged size of all cases is none of this one
    emitted: str = ""  # the path below emitted/cuda and emitted/cute, of a golden


ATTENTION = {"dim": 128, "block_M": 128, "block_N": 128, "threads": 256}
INT4 = {"block_M": 256, "block_N": 128, "block_K": 64, "num_stages": 4, "threads": 256}
WIDE = {"block_N": 256, "block_K": 64, "threads": 256}
BYTES = {"transpose_B": True, "block_N": 256, "block_K": 128, "threads": 256}
INT8 = {"dtype": "int8", "out_dtype": "int32", "accum_dtype": "int32"}
EPILOGUE = {"transpose_B": True, "bias": True, "activation": "gelu", "dtype": "bfloat16"}
TRANSPOSED = {"dtype": "bfloat16", "out_dtype": "float32", "transpose_A": True, "transpose_B": True, "bias": True}
CUBE = {"M": 4096, "N": 4096, "K": 4096}
ROW = {"M": 1, "N": 8192, "K": 8192}
SPLIT = {"M": 256, "N": 4096, "K": 8192}
SEQUENCES = {"batch": 4, "seq_len": 4096, "heads": 32}
VARLEN = {"batch": 8, "heads": 32, "tokens": 16384, "tokens_k": 16384, "max_seqlen": 2048}
STEPS = {"cu_seqlens": ("steps", "max_seqlen"), "cu_seqlens_k": ("steps", "max_seqlen")}
DECODED = {"batch": 32, "kv_heads": 8, "max_len": 8192, "group": 8}
LENGTHS = {"lengths": ("full", "max_len")}
PAGED = {"batch": 64, "heads": 128, "max_len": 4096, "pages": 4096, "max_pages": 64}
TABLE = {"block_table": ("below", "pages")}
SCAN = {"batch": 8, "seqlen": 4096, "heads": 80}
CASES = (
    Case("gemm_relu, 8192^3", "gemm_relu", {"M": 8192, "N": 8192, "K": 8192}, WIDE, calls=5),
    Case("gemm, bfloat16, bias and gelu", "gemm", CUBE, EPILOGUE),
    Case("gemm, int8", "gemm", CUBE, INT8 | BYTES),
    Case("gemm, float8", "gemm", CUBE, {"dtype": "float8_e4m3fn", "out_dtype": "float16"} | BYTES),
    Case("gemm_fp8_scaled", "gemm_fp8_scaled", CUBE),
    Case("gemm_batched", "gemm_batched", {"batch": 4, "M": 2048, "N": 2048, "K": 2048}, {"block_K": 64},
         kernel="gemm_batched"),
    Case("gemm_grouped", "gemm_batched", {"tokens": 16384, "groups": 8, "rows": 2048, "N": 4096, "K": 4096},
         {"block_K": 64}, kernel="gemm_grouped", special={"Offsets": ("steps", "rows")}),
    Case("gemm_persistent", "gemm_persistent", CUBE),
    Case("linear", "linear", CUBE, kernel="linear"),
    Case("linear_int4", "linear_int4", CUBE, INT4),
    Case("linear_int4_prefill", "linear_int4_prefill", CUBE),
    Case("dequant_gemm", "dequant", CUBE, kernel="dequant_gemm"),
    Case("dequant_gemv", "dequant", ROW, kernel="dequant_gemv", calls=20),
    Case("w2a8_gemm", "w2a8", CUBE, kernel="w2a8_gemm", ragged={"K": 576}),
    Case("w2a8_gemv", "w2a8", ROW, kernel="w2a8_gemv", calls=20),
    Case("gemm_cluster", "gemm_cluster", CUBE),
    *(Case(name, "gemm_splitk", SPLIT, {"block_N": 256, "block_K": 64}, kernel=name, calls=20)
      for name in ("gemm_splitk", "gemm_splitk_atomic", "gemm_streamk")),
    Case("gemm_clusters", "gemm_clusters", {"M": 512, "N": 1024, "K": 8192}, kernel="gemm_clusters", calls=20),
    Case("gemm_few_rows", "gemm_few_rows", {"M": 16, "N": 4096, "K": 8192}, kernel="gemm_few_rows", calls=20),
    Case("gemm_hybrid", "gemm_hybrid", {"M": 4096, "N": 4096, "K": 4096}),
    Case("attention", "attention", SEQUENCES, ATTENTION | {"is_causal": False}, calls=5),
    Case("attention, causal", "attention", SEQUENCES, ATTENTION | {"is_causal": True}, calls=5),
    Case("attention, window", "attention", SEQUENCES, ATTENTION | {"group": 4, "is_causal": True, "window": 128}),
    Case("attention_varlen", "attention_varlen", VARLEN, ATTENTION | {"group": 4, "is_causal": True}, special=STEPS),
    Case("attention_block_sparse", "attention_block_sparse", SEQUENCES, ATTENTION | {"is_causal": True}, calls=5),
    Case("mla_decode", "mla_decode", PAGED, special=LENGTHS | TABLE),
    Case("flash_decoding", "flash_decoding", DECODED, {"dim": 128, "group": 8}, special=LENGTHS),
    Case("linear_attention", "linear_attention", SEQUENCES | {"dim_v": 64}, {"dim": 64}),
    Case("chunk_scan", "chunk_scan", SCAN),
    Case("chunk_state", "chunk_state", SCAN),
    Case("rmsnorm", "rmsnorm", {"M": 16384}, {"dim": 4096}),
    Case("rmsnorm_silu", "rmsnorm_silu", {"M": 16384}, {"dim": 4096}),
    Case("layernorm", "layernorm", {"M": 65536}, {"dim": 1024}),
    Case("row_softmax", "row_softmax", {"M": 65536}),
    Case("reduce_rows", "reduce_rows", {"M": 16384, "N": 8192}),
    Case("rope", "rope", SEQUENCES, {"dim": 128}),
    Case("cross_entropy", "cross_entropy", {"M": 8192, "vocab": 32000}, special={"Labels": ("below", "vocab")}),
    Case("vector_add", "vector_add", {"N": 1 << 26}),
    Case("gemv", "gemv", {"N": 8192, "K": 8192}),
    Case("sm_80: gemm_relu", "gemm_relu", CUBE, target=AMPERE),
    Case("sm_80: gemm, transposed, bias", "gemm", CUBE, TRANSPOSED, AMPERE),
    Case("sm_80: gemm, int8", "gemm", CUBE, INT8 | {"transpose_B": True}, AMPERE),
    Case("sm_80: gemm_fp8_scaled", "gemm_fp8_scaled", CUBE, {"parts": 1}, AMPERE),
    Case("sm_80: gemm_splitk_atomic", "gemm_splitk", SPLIT, target=AMPERE, kernel="gemm_splitk_atomic", calls=20),
    Case("sm_80: dequant_gemm", "dequant", CUBE, target=AMPERE, kernel="dequant_gemm"),
    Case("sm_80: linear_int4", "linear_int4", CUBE, target=AMPERE),
    Case("sm_80: attention, causal", "attention", SEQUENCES, {"is_causal": True}, AMPERE, calls=5),
    Case("sm_80: attention_varlen", "attention_varlen", VARLEN, {"dim": 128, "group": 4, "is_causal": True}, AMPERE,
         special=STEPS),
    Case("sm_80: mla_decode", "mla_decode", {"batch": 64, "heads": 128, "max_len": 4096},
         {"block_N": 32, "num_split": 4}, AMPERE, special=LENGTHS),
)  # fmt: skip


def bindings_of(root: str, name: str) -> Any:
    """Those of a source in emitted/`root`; None where there is none."""
    path = ROOT / "emitted" / root / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["bindings"] if path.is_file() else None


def goldens() -> list[Case]:
    """The sources in emitted/cute, each with the sizes of a case of its kernel."""
    of_kernel = {case.kernel or case.example: case for case in reversed(CASES)}
    found = []
    for path in sorted((ROOT / "emitted/cute").rglob("*.json")):
        name = str(path.relative_to(ROOT / "emitted/cute").with_suffix(""))
        target = HOPPER if name.startswith("sm_90a") else AMPERE
        case = of_kernel[json.loads(path.read_text(encoding="utf-8"))["entry"]]
        found.append(replace(case, name=f"emitted {name}", bindings={}, target=target, emitted=name))
    return found


def folder_of(case: Case, style: str) -> Path:
    return Path(re.sub(r"\W+", "_", case.name)) / style


def emit(out: Path, names: list[str]) -> None:
    """Writes the sources of all cases, or of those named."""
    for case in CASES:
        for style in STYLES if not names or case.name in names else ():
            write(case, style, case.bindings, out / folder_of(case, style))


def write(case: Case, style: str, bindings: Mapping[str, object], folder: Path) -> None:
    """Writes a source of one style."""
    import tile2cu

    path = ROOT / "examples" / f"{case.example}.py"
    found = tile2cu.emit(path, case.kernel, target=case.target, style=style, **bindings)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in next(iter(found.values())).files.items():
        (folder / name).write_text(text, encoding="utf-8")


def copy_goldens(out: Path) -> None:
    """Copies the sources of emitted/cute and their counterparts in emitted/cuda; emits `tl` where it has others."""
    for case in goldens():
        bindings = bindings_of("cute", case.emitted)
        for style, root in zip(STYLES, ("cuda", "cute"), strict=True):
            folder = out / folder_of(case, style)
            if bindings_of(root, case.emitted) != bindings:
                write(case, style, bindings, folder)
                continue
            folder.mkdir(parents=True, exist_ok=True)
            for suffix in (".cu", ".h", ".json"):
                shutil.copy((ROOT / "emitted" / root / case.emitted).with_suffix(suffix), folder)


def build(folder: Path) -> dict[str, Any]:
    """Compiles the source in a folder to k.so: nvcc's seconds, the source's lines, registers and spilled bytes."""
    (source,) = folder.glob("*.cu")
    text = source.read_text(encoding="utf-8")
    found = re.search(r"for cuda:sm_(\w+)\.", text)
    target = found[1] if found else ""
    code = f"arch=compute_{target},code=sm_{'90' if target == '80' else target}"
    include = ("-isystem", f"{os.environ['CUTLASS_PATH']}/include", "-I", str(ROOT / "headers"))
    flags = ("-O3", "-std=c++17", "--expt-relaxed-constexpr", "-DNDEBUG", "-Xptxas", "-v")
    linked = ("-Xcompiler", "-fPIC", "-shared", "-Xlinker", "-Bsymbolic", str(source), "-o")
    start = time.time()
    command = ("nvcc", "-gencode", code, *flags, *include, *linked)
    done = subprocess.run([*command, str(folder / "k.so")], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{source} does not compile:\n{done.stdout}{done.stderr}")
    log = done.stdout + done.stderr
    return {
        "seconds": time.time() - start,
        "lines": len(text.splitlines()),
        "registers": [int(each) for each in re.findall(r"Used (\d+) registers", log)],
        "spills": sum(int(each) for each in re.findall(r"(\d+) bytes spill stores", log)),
    }


class Call:
    """A launcher with its arguments; `inputs` holds those that another style's launcher has read, by name."""

    def __init__(self, folder: Path, case: Case, sizes: Mapping[str, int], inputs: dict[str, Any]) -> None:
        import torch

        (path,) = folder.glob("*.json")
        manifest = json.loads(path.read_text(encoding="utf-8"))
        library = ctypes.CDLL(str(folder / "k.so"))
        generator = torch.Generator("cuda").manual_seed(7)
        values = {**manifest["bindings"], **case.bindings, **sizes}
        self.outputs, self.held, given, numbers = [], [library], [], []
        for argument in manifest["arguments"]:
            if argument["kind"] != "tensor":
                numbers.append(ctypes.c_int(int(values[argument["name"]])))
                continue
            shape = tuple(extent(each, values) for each in argument["shape"])
            kind, dtype = case.special.get(argument["name"]), getattr(torch, argument["dtype"])
            if argument["access"] != "read":
                tensor = torch.zeros(shape, dtype=dtype, device="cuda")
                self.outputs.append(tensor)
            else:
                if argument["name"] not in inputs:
                    inputs[argument["name"]] = filled(shape, dtype, kind, values, generator)
                tensor = inputs[argument["name"]]
            self.held.append(tensor)
            given.append(ctypes.c_void_p(tensor.data_ptr()))
        size = getattr(library, f"{manifest['entry']}_workspace_size")
        size.restype = ctypes.c_size_t
        self.bytes = size(*numbers)
        self.workspace = torch.zeros(max(1, self.bytes), dtype=torch.uint8, device="cuda")
        self.launcher, self.given = getattr(library, manifest["entry"]), (*given, *numbers)

    def __call__(self) -> int:
        import torch

        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        workspace = ctypes.c_void_p(self.workspace.data_ptr()), ctypes.c_size_t(self.bytes)
        return int(self.launcher(*self.given, *workspace, stream))


def calls_of(folders: Mapping[str, Path], case: Case, sizes: Mapping[str, int]) -> dict[str, Call]:
    """The launchers of both styles, with the same inputs."""
    inputs: dict[str, Any] = {}
    return {style: Call(folder, case, sizes, inputs) for style, folder in folders.items()}


def extent(stated: object, values: Mapping[str, Any]) -> int:
    """An extent that a manifest states."""
    return int(eval(str(stated), {"ceildiv": lambda a, b: -(-a // b)}, dict(values)))


def filled(shape: tuple[int, ...], dtype: Any, special: tuple[str, str] | None, values: Any, generator: Any) -> Any:
    """A tensor of normal numbers, of small integers, or of indices."""
    import torch

    if special is not None:
        kind, limit = special[0], int(values[special[1]])
        if kind == "steps":
            return torch.arange(shape[0], dtype=dtype, device="cuda") * limit
        if kind == "full":
            return torch.full(shape, limit, dtype=dtype, device="cuda")
        return torch.randint(0, limit, shape, dtype=dtype, device="cuda", generator=generator)
    if dtype == torch.uint8:
        return torch.randint(0, 256, shape, dtype=dtype, device="cuda", generator=generator)
    if not dtype.is_floating_point:
        return torch.randint(-8, 8, shape, dtype=torch.int32, device="cuda", generator=generator).to(dtype)
    computed = torch.float32 if dtype == torch.float32 else torch.float16
    return torch.empty(shape, dtype=computed, device="cuda").normal_(0, 0.5, generator=generator).to(dtype)


def difference(calls: Mapping[str, Call]) -> str:
    """`bits`, or the largest difference in proportion to the largest value."""
    import torch

    statuses = {style: call() for style, call in calls.items()}
    torch.cuda.synchronize()
    if set(statuses.values()) != {0}:
        return f"status {statuses['tl']}, {statuses['cute']}"
    worst = 0.0
    for tl, cute in zip(calls["tl"].outputs, calls["cute"].outputs, strict=True):
        if not torch.equal(tl.view(torch.uint8), cute.view(torch.uint8)):
            of, apart = tl.float().abs().max().item(), (tl.float() - cute.float()).abs().max().item()
            worst = max(worst, apart / of if of > 0 else float("inf"))
    return f"{worst:.0e}" if worst else "bits"


def ragged_sizes(case: Case) -> dict[str, int]:
    """Sizes that tiles do not divide."""
    return {name: case.ragged.get(name, RAGGED.get(name, size)) for name, size in case.sizes.items()}


def timed(calls: Mapping[str, Callable[[], int]], count: int) -> dict[str, float]:
    """Milliseconds of a call, alternately."""
    import torch

    graphs: dict[str, Any] = {}
    for style, call in calls.items():
        graphs[style] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[style]):
            for _ in range(count):
                call()
        graphs[style].replay()
    times: dict[str, list[float]] = {style: [] for style in calls}
    for turn in range(9):
        for style in (STYLES, STYLES[::-1])[turn % 2]:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graphs[style].replay()
            end.record()
            end.synchronize()
            times[style].append(start.elapsed_time(end) / count)
    return {style: statistics.median(each) for style, each in times.items()}


def run(out: Path) -> None:
    """Builds, compares and times what was emitted, and writes rows.json."""
    found = [case for case in (*CASES, *goldens()) if (out / folder_of(case, "tl")).is_dir()]
    folders = [out / folder_of(case, style) for style in reversed(STYLES) for case in found]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        built = dict(zip(folders, pool.map(build, folders), strict=True))
    rows = []
    for case in found:
        of = {style: out / folder_of(case, style) for style in STYLES}
        small = ragged_sizes(case)
        ragged = difference(calls_of(of, case, small))
        calls = calls_of(of, case, case.sizes)
        bits = difference(calls)
        row = {"case": case.name, "bits": bits, "ragged": ragged, "ms": timed(calls, case.calls)}
        rows.append(row | {style: built[of[style]] for style in STYLES})
        print(row, flush=True)
        (out / "rows.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def table(out: Path) -> None:
    """Prints the table."""
    print("| Kernel | bits | ms `tl` | ms `cute` | tl / cute | nvcc s | lines | registers | spilled bytes |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in json.loads((out / "rows.json").read_text(encoding="utf-8")):
        ms, both = row["ms"], [row[style] for style in STYLES]
        bits = row["bits"] if row["bits"] == row["ragged"] else f"{row['bits']}, {row['ragged']}"
        parts = [row["case"], "equal" if bits == "bits" else bits, f"{ms['tl']:.4f}", f"{ms['cute']:.4f}"]
        parts += [f"{ms['tl'] / ms['cute']:.2f}", " / ".join(f"{each['seconds']:.0f}" for each in both)]
        parts += [" / ".join(str(each["lines"]) for each in both)]
        parts += [" / ".join(", ".join(map(str, each["registers"])) for each in both)]
        print(f"| {' | '.join([*parts, ' / '.join(str(each['spills']) for each in both)])} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("emit", "goldens", "run", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    if options.verb == "emit":
        emit(options.folder, options.cases)
    else:
        {"goldens": copy_goldens, "run": run, "table": table}[options.verb](options.folder)


if __name__ == "__main__":
    main()
