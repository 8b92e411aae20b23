"""`tile2cu bench`: a kernel timed on a GPU against its peers; on the CPU engine, the work of a call."""

import argparse
import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tile2cu.cli.request import add_sizes, add_source, bindings, sizes, whole_sizes
from tile2cu.cli.user_code import function_of, module_of
from tile2cu.core.errors import Tile2CuError

PeersOf = Callable[..., Mapping[str, Callable[[], Any]]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda", "hip"),
        help="a GPU, or cpu: counts without times; by default a GPU where there is one that runs the target",
    )
    add_sizes(parser, "a size, or a scalar argument, of the call")
    parser.add_argument(
        "--peer",
        dest="peers",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION|FILE.py",
        help="what to compare with: a function of the tensors that the kernel reads, as torch:matmul, or a file with"
        " peers(*tensors), which returns calls by label; may be given several times",
    )
    parser.add_argument(
        "--tiles",
        choices=("default", "auto"),
        default="default",
        help="auto: the model chooses the values of tile parameters without -D, for these sizes",
    )
    parser.add_argument("--flops", type=int, help="the operations of a call, in place of the MMAs of the program")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds, of which the median is reported (3)")
    parser.add_argument("--burst", action="store_true", help="30 ms idle before each call: no power limit is reached")
    parser.add_argument("--clean", action="store_true", help="an L2 of lines that were read, not written")
    parser.add_argument("--graph", action="store_true", help="replay each call from a CUDA graph")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    from tile2cu.by_size import KernelBySize
    from tile2cu.loading import load
    from tile2cu_runtime.bench import Timing, bench

    peers = [_peers_of(each) for each in options.peers]
    given: dict[str, Any] = bindings(options)
    kernel = load(
        options.file,
        options.kernel,
        target=options.target,
        style=options.style,
        device=options.device,
        tiles=options.tiles,
        **given,
    )
    if isinstance(kernel, KernelBySize):
        kernel = kernel.kernel_for(**whole_sizes(options))
    timing = Timing(rounds=options.rounds, burst=options.burst, clean=options.clean, graph=options.graph)
    found = bench(kernel, sizes(options), peers=peers, mma_flops=options.flops, timing=timing)
    print(json.dumps(found.as_data(), indent=1) if options.json else found)
    return 0


def _peers_of(text: str) -> PeersOf:
    """The peers of one --peer, which are imported when tensors are there: not where nothing is timed.

    Raises T2C-C002 for another form, T2C-C001 for a file that does not exist.
    """
    if text.endswith(".py"):
        file = Path(text)
        if not file.is_file():
            raise Tile2CuError("T2C-C001", f"cannot read `{file}`: there is no such file")
        return lambda *tensors: function_of(module_of(file), "peers", f"--peer {text}")(*tensors)
    module, colon, function = text.partition(":")
    if not (module and colon and function):
        raise Tile2CuError(
            "T2C-C002", f"`--peer {text}` is neither MODULE:FUNCTION nor a Python file", help="--peer torch:matmul"
        )

    def peers(*tensors: Any) -> Mapping[str, Callable[[], Any]]:
        called = function_of(_imported(module, text), function, f"--peer {text}")
        return {text: lambda: called(*tensors)}

    return peers


def _imported(module: str, text: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Tile2CuError("T2C-C002", f"`--peer {text}`: {error}", help=f"pip install {module}") from error
