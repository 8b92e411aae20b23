"""`tile2cu run`: a kernel on made-up data, on a GPU, on the CPU engine or on the AMD simulator, with a report."""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile2cu.cli.request import DEFAULT_TARGET, add_sizes, add_source, bindings, sizes
from tile2cu.core.errors import Tile2CuError

if TYPE_CHECKING:
    from tile2cu_runtime.comparison import Comparison
    from tile2cu_runtime.kernel import Kernel
    from tile2cu_runtime.spec import Manifest
    from tile2cu_runtime.trial import TensorSummary

_AMD_TARGET = "hip:gfx942"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser, default_target=None, more=f", and {_AMD_TARGET} for sim and hip")
    parser.add_argument(
        "--device",
        choices=("cpu", "sim", "ptx", "cuda", "hip"),
        default="cpu",
        help="cpu: the text on the CPU engine (default); sim: AMD's code object, ptx: nvcc's PTX, simulated; or a GPU",
    )
    add_sizes(parser, "a size, or a scalar argument, of the call; the sizes of --input's tensors are inferred")
    parser.add_argument("--seed", type=int, default=0, help="what the inputs are made from (0)")
    parser.add_argument("--input", type=Path, metavar="NPZ", help="tensors by name, in place of made-up ones")
    parser.add_argument("--save", type=Path, metavar="NPZ", help="where to write all tensors after the call")
    parser.add_argument(
        "--reference",
        metavar="FILE.py:FUNCTION",
        help="what the results are compared with: a function of the tensors that the kernel reads and of its scalars,"
        " in its order, that returns what the kernel writes; it gets torch tensors where its file imports torch, else"
        " NumPy arrays. The file is executed",
    )
    for name, what in (("--rtol", "the reference's element"), ("--atol", "1")):
        default = "by default 4 units in the last place of types of at most 16 bits, 64 of others"
        help = f"how much a result may differ, times {what}; {default}"
        parser.add_argument(name, type=float, metavar="NUMBER", help=help)
    parser.add_argument("--stats", action="store_true", help="count instructions, bytes, sectors and bank conflicts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON, too")
    parser.add_argument("--no-check", action="store_true", help="run without the checks for races and the like: faster")


def run(options: argparse.Namespace) -> int:
    """Exit status 1 when something was found, or a result differs from the reference."""
    from tile2cu_runtime.trial import call_numbers, made_up_tensors, summaries, try_kernel

    reference = _reference(options)
    kernel = _load(options)
    given = _read_tensors(options.input) if options.input else {}
    numbers = call_numbers(kernel.manifest, sizes(options), given)
    tensors = made_up_tensors(kernel.manifest, numbers, options.seed) | given
    before = {name: array.copy() for name, array in tensors.items()} if reference else {}
    after = try_kernel(kernel, tensors, numbers)
    if options.save:
        _save(options.save, after)
    lines = list(summaries(kernel.manifest, after))
    compared = list(reference(kernel.manifest, before, after, numbers)) if reference else []
    _print(kernel, numbers, lines, compared, options)
    if options.json:
        _write(options.json, json.dumps(_as_data(kernel, numbers, lines, compared, options), indent=1) + "\n")
    differs = any(not each.agrees for each in compared)
    return int(differs or (_is_checked(options) and kernel.report is not None and not kernel.report.is_clean))


def _is_checked(options: argparse.Namespace) -> bool:
    """Whether findings are looked for: by the engine and the simulators, without --no-check."""
    return not options.no_check and options.device not in ("cuda", "hip")


def _reference(options: argparse.Namespace) -> "Callable[..., Iterator[Comparison]] | None":
    """What compares with the function of --reference. Raises T2C-C001 and T2C-C002 when it cannot be had."""
    from tile2cu.cli.user_code import function_of, module_of
    from tile2cu_runtime.comparison import compare

    if options.reference is None:
        if options.rtol is not None or options.atol is not None:
            raise Tile2CuError("T2C-C002", "--rtol and --atol need --reference FILE.py:FUNCTION")
        return None
    given = f"--reference {options.reference}"
    file, colon, name = options.reference.rpartition(":")
    if not (file.endswith(".py") and colon and name):
        raise Tile2CuError("T2C-C002", f"`{given}` is not of the form FILE.py:FUNCTION")
    module = module_of(Path(file))
    function = function_of(module, name, given)

    def compared(manifest: "Manifest", *call: Any) -> "Iterator[Comparison]":
        torch = hasattr(module, "torch")
        return compare(manifest, function, *call, rtol=options.rtol, atol=options.atol, with_torch=torch)

    return compared


def _load(options: argparse.Namespace) -> "Kernel":
    on_gpu = options.device in ("cuda", "hip")
    how: dict[str, Any] = {"statistics": options.stats and not on_gpu, "on_finding": "report"}
    check = not options.no_check and not on_gpu
    from tile2cu.loading import EMITTED

    if options.file.suffix in EMITTED:
        from tile2cu_runtime import load_kernel

        return load_kernel(options.file, device=options.device, check=check, **how)
    from tile2cu.loading import load

    given: dict[str, Any] = bindings(options)
    return load(
        options.file,
        options.kernel,
        target=options.target or (_AMD_TARGET if options.device in ("sim", "hip") else DEFAULT_TARGET),
        style=options.style,
        device=options.device,
        check=check,
        options=how,
        tiles="default",
        **given,
    )


def _read_tensors(path: Path) -> dict[str, Any]:
    """Arrays of an .npz file. Raises T2C-C001 when it cannot be read; nothing in it is executed."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError) as error:
        raise Tile2CuError("T2C-C001", f"cannot read `{path}`: {error}") from error


def _save(path: Path, tensors: dict[str, Any]) -> None:
    """An .npz file of all tensors. Types that NumPy lacks are stored as float32."""
    import io

    import numpy as np

    content = io.BytesIO()
    plain = {name: array.astype(np.float32) if array.dtype.kind == "V" else array for name, array in tensors.items()}
    np.savez(content, **plain)
    _write(path, content.getvalue())


def _write(path: Path, content: str | bytes) -> None:
    try:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise Tile2CuError("T2C-C005", f"cannot write `{path}`: {error.strerror}") from error


def _print(
    kernel: "Kernel",
    numbers: dict[str, Any],
    lines: list["TensorSummary"],
    compared: list["Comparison"],
    options: argparse.Namespace,
) -> None:
    from tile2cu_runtime.comparison import HEADING
    from tile2cu_runtime.trial import SUMMARY_HEADING

    sizes = "".join(f", {name} = {value}" for name, value in numbers.items())
    print(f"{kernel.manifest.kernel} for {kernel.manifest.target} on {kernel.device}, seed {options.seed}{sizes}")
    print("\n".join(f"  {line}" for line in (SUMMARY_HEADING, *lines)))
    if compared:
        print("\n".join(f"  {line}" for line in (HEADING, *compared)))
    report = kernel.report
    if report is not None and _is_checked(options):
        print(report)
    else:
        print(f"{kernel.manifest.kernel}: not checked")
    if options.stats:
        figures = [*kernel.costs, *(report.shared if report else ()), *(report.global_memory if report else ())]
        print("\n".join(map(str, figures)))


def _as_data(
    kernel: "Kernel",
    numbers: dict[str, Any],
    lines: list["TensorSummary"],
    compared: list["Comparison"],
    options: argparse.Namespace,
) -> dict[str, Any]:
    from dataclasses import asdict

    report = kernel.report
    return {
        "kernel": kernel.manifest.kernel,
        "target": kernel.manifest.target,
        "device": kernel.device,
        "seed": options.seed,
        "numbers": numbers,
        "tensors": [asdict(line) for line in lines],
        "checked": _is_checked(options),
        "reference": [asdict(each) | {"agrees": each.agrees} for each in compared],
        "findings": [asdict(finding) for finding in report.findings] if report else [],
        "warnings": [asdict(warning) for warning in report.warnings] if report else [],
        "costs": [cost.as_data() for cost in kernel.costs],
        "shared": [asdict(access) for access in report.shared] if report else [],
        "global": [asdict(access) for access in report.global_memory] if report else [],
    }
