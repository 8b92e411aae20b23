"""The manifest as frozen data: name, arguments and line map of a kernel.

`NAME.json` is written by the transpiler and read here; neither side imports the other.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar

from tile2cu_runtime.errors import ManifestError
from tile2cu_runtime.shape import Shape, parse_extent

FORMAT = 1
_ACCESSES = ("read", "write", "readwrite")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TARGET = re.compile(r"(cuda|hip):[a-z0-9_]+")

DTYPE_BYTES: Mapping[str, int] = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "ptr": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}
# Element types with two elements per byte, and whether array libraries have a dtype of that name for such a byte.
PACKED_DTYPES: Mapping[str, str] = {"int4": "int8", "uint4": "uint8", "float4_e2m1fn": "float4_e2m1fn_x2"}


@dataclass(frozen=True, kw_only=True)
class TensorArgument:
    """A tensor, row-major, and contiguous if it has no `strides`. They and `shape` are in elements, `alignment` of
    its first element in bytes.
    """

    name: str
    dtype: str
    shape: Shape
    access: Literal["read", "write", "readwrite"]
    alignment: int = 16
    strides: Shape = ()

    @property
    def written(self) -> bool:
        return self.access != "read"


@dataclass(frozen=True, kw_only=True)
class ScalarArgument:
    """A scalar."""

    name: str
    dtype: str


@dataclass(frozen=True, kw_only=True)
class SizeArgument:
    """A size, solved from the tensors' shapes."""

    name: str
    dtype: str


Argument = TensorArgument | ScalarArgument | SizeArgument


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The launch configuration. `grid` is in C++; `shared_bytes` of `shared_limit` are used.

    `kernel` is the kernel's namespace if a source has several. A persistent kernel loops over `tiles`. `lifetimes`: the
    first and last Python line of each group of tiles that reuse the shared memory between the offsets `aliased`.
    """

    kernel: str = ""
    tiles: tuple[str, ...] = ()
    grid: tuple[str, ...] = ()
    threads: int = 0
    shared_bytes: int = 0
    shared_limit: int = 0
    aliased: tuple[int, int] = (0, 0)
    lifetimes: tuple[tuple[int, int], ...] = ()

    def lifetime(self, python_line: int) -> int | None:
        """The lifetime that a Python line of a statement belongs to which accesses this memory, if it is one alone.

        A lifetime ends with the first line of its last statement.
        """
        if any(last >= first for (_, last), (first, _) in pairwise(self.lifetimes)):
            return None
        found = bisect_right(self.lifetimes, python_line, key=lambda lines: lines[0])
        return found - 1 if found else None


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A decision of the transpiler, with its rule and Python line (0: none)."""

    about: str
    what: str
    value: str
    rule: str
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The properties of an emitted kernel.

    `arguments` are in the order of the C launcher: tensors and scalars in call order, then sizes; a workspace, its
    bytes and the stream follow. `outputs` are indices into it. `needs` names the libraries whose headers the source
    includes in addition to `tl`: "cutlass". `workspace` names the tensors in the workspace. `lines` are pairs (.cu
    line, Python line), ascending; a .cu line belongs to the last pair at or above it, and Python line 0 means none.
    """

    kernel: str
    function: str
    entry: str
    target: str
    tile2cu: str
    source_file: str
    source_sha256: str
    files: tuple[tuple[str, str], ...]
    arguments: tuple[Argument, ...]
    needs: tuple[str, ...] = ()
    outputs: tuple[int, ...] = ()
    workspace: tuple[str, ...] = ()
    bindings: tuple[tuple[str, object], ...] = ()
    launches: tuple[Launch, ...] = (Launch(),)
    facts: tuple[Fact, ...] = ()
    lines: tuple[tuple[int, int], ...] = ()

    @property
    def launch(self) -> Launch:
        """The launch of a source with one kernel; an empty one where there are several."""
        return self.launches[0] if len(self.launches) == 1 else Launch()

    @property
    def banks(self) -> int:
        """The shared-memory banks of the target, 4 bytes each. [AMD CDNA4 ISA, "Local Data Share": 64]"""
        return 64 if self.target == "hip:gfx950" else 32

    @property
    def warp_size(self) -> int:
        """The threads per warp of the target: 64 for AMD's wavefronts."""
        return 64 if self.target.startswith("hip:") else 32

    @property
    def text_file(self) -> str:
        """Name of the kernel's .cu (or .hip) file."""
        return next(name for name, _ in self.files if name.endswith((".cu", ".hip")))

    @property
    def header_file(self) -> str:
        """Name of the header that declares the launcher."""
        return next(name for name, _ in self.files if name.endswith(".h"))

    @cached_property
    def called(self) -> tuple[TensorArgument | ScalarArgument, ...]:
        """The caller's arguments, in order: all except sizes."""
        return tuple(argument for argument in self.arguments if not isinstance(argument, SizeArgument))

    @cached_property
    def tensors(self) -> tuple[TensorArgument, ...]:
        return tuple(argument for argument in self.arguments if isinstance(argument, TensorArgument))

    @cached_property
    def sizes(self) -> tuple[SizeArgument, ...]:
        return tuple(argument for argument in self.arguments if isinstance(argument, SizeArgument))

    @cached_property
    def output_names(self) -> frozenset[str]:
        return frozenset(self.arguments[index].name for index in self.outputs)

    def python_line(self, cu_line: int) -> int:
        """The Python line that a line of the .cu file comes from; 0 if there is none."""
        place = bisect_right(self.lines, cu_line, key=lambda pair: pair[0])
        return self.lines[place - 1][1] if place else 0


def read_manifest(path: Path) -> Manifest:
    """The manifest in a file. Errors: T2C-R001 when it is missing, T2C-R002 when it is malformed."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise ManifestError(
            "T2C-R001",
            f"cannot read the manifest {path}: {problem.strerror}",
            help="give the folder that `tile2cu KERNEL.py -o FOLDER` wrote, or the .json file in it",
        ) from None
    try:
        data = json.loads(text)
    except ValueError as problem:
        raise ManifestError("T2C-R002", f"{path} is not JSON: {problem}") from None
    return parse_manifest(data, where=str(path))


def parse_manifest(data: object, *, where: str = "manifest") -> Manifest:
    """The manifest in decoded JSON. Errors: T2C-R002, naming the field; T2C-R003 for another format."""
    fields = _Fields(data, where)
    if (found := fields.take("format", int)) != FORMAT:
        raise ManifestError(
            "T2C-R003",
            f"{where} has manifest format {found}; this runtime reads format {FORMAT}",
            help="regenerate the kernel with the installed version of tile2cu",
        )
    source = _Fields(fields.take("source", dict), f"{where}: source")
    manifest = Manifest(
        kernel=fields.take("kernel", str),
        function=fields.take("function", str),
        entry=fields.take("entry", str),
        target=fields.take("target", str),
        tile2cu=fields.take("tile2cu", str),
        source_file=source.take("file", str),
        source_sha256=source.take("sha256", str),
        files=_files(fields.take("files", dict), where),
        arguments=tuple(
            _argument(item, f"{where}: arguments[{i}]") for i, item in enumerate(fields.take("arguments", list))
        ),
        needs=tuple(fields.take("needs", list, [])),
        outputs=tuple(fields.take("outputs", list, [])),
        workspace=tuple(
            _Fields(item, f"{where}: workspace[{i}]").take("name", str)
            for i, item in enumerate(fields.take("workspace", list, []))
        ),
        bindings=tuple(fields.take("bindings", dict, {}).items()),
        launches=_launches(fields, where),
        facts=tuple(_fact(item, f"{where}: facts[{i}]") for i, item in enumerate(fields.take("facts", list, []))),
        lines=_lines(fields.take("lines", list, []), where),
    )
    _check(manifest, where)
    return manifest


T = TypeVar("T")


class _Fields:
    """The fields of a JSON object, each checked for its type."""

    def __init__(self, data: object, where: str) -> None:
        if not isinstance(data, dict):
            raise ManifestError("T2C-R002", f"{where} is not a JSON object")
        self.data: dict[str, Any] = data
        self.where = where

    def take(self, name: str, kind: type[T], default: T | None = None) -> T:
        value = self.data.get(name, default)
        # bool is a subclass of int in Python, not in JSON.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            found = "is missing" if value is None else f"is {value!r}"
            raise ManifestError("T2C-R002", f"{self.where}: `{name}` must be {_JSON_NAMES[kind]}, but {found}")
        return value


_JSON_NAMES: Mapping[type, str] = {int: "an integer", str: "a string", list: "an array", dict: "an object"}


def _files(data: Mapping[str, object], where: str) -> tuple[tuple[str, str], ...]:
    """Names and SHA-256 of the emitted files. A name contains no path."""
    for name, digest in data.items():
        if not name or Path(name).name != name or not isinstance(digest, str):
            raise ManifestError("T2C-R002", f"{where}: `files` has the entry {name!r}: {digest!r}")
    for kind, suffixes in (("kernel text", (".cu", ".hip")), ("header", (".h",))):
        if sum(name.endswith(suffixes) for name in data) != 1:
            raise ManifestError("T2C-R002", f"{where}: `files` must name exactly one {kind} ({' or '.join(suffixes)})")
    return tuple((name, str(digest)) for name, digest in data.items())


def _argument(data: object, where: str) -> Argument:
    fields = _Fields(data, where)
    kind, name, dtype = fields.take("kind", str), fields.take("name", str), fields.take("dtype", str)
    if dtype not in DTYPE_BYTES and not (kind == "tensor" and dtype in PACKED_DTYPES):
        raise ManifestError("T2C-R002", f"{where}: `{name}` has the unknown dtype {dtype!r}")
    match kind:
        case "tensor":
            return _tensor(fields, name, dtype)
        case "scalar":
            return ScalarArgument(name=name, dtype=dtype)
        case "size":
            return SizeArgument(name=name, dtype=dtype)
    raise ManifestError("T2C-R002", f"{where}: `kind` is {kind!r}, not tensor, scalar or size")


def _tensor(fields: _Fields, name: str, dtype: str) -> TensorArgument:
    access = fields.take("access", str)
    if access not in _ACCESSES:
        raise ManifestError("T2C-R002", f"{fields.where}: `access` is {access!r}, not one of {', '.join(_ACCESSES)}")
    alignment = fields.take("alignment", int, 16)
    if alignment < 1 or alignment & (alignment - 1):
        raise ManifestError("T2C-R002", f"{fields.where}: `alignment` is {alignment}, not a power of two")
    shape = tuple(parse_extent(extent, f"{fields.where}: shape of `{name}`") for extent in fields.take("shape", list))
    given = fields.take("strides", list, [])
    strides = tuple(parse_extent(stride, f"{fields.where}: strides of `{name}`") for stride in given)
    return TensorArgument(
        name=name,
        dtype=dtype,
        shape=shape,
        access=access,  # type: ignore[arg-type]
        alignment=alignment,
        strides=strides,
    )


def _launches(fields: _Fields, where: str) -> tuple[Launch, ...]:
    several = fields.take("launches", list, [])
    if several:
        return tuple(_launch(item, f"{where}: launches[{i}]") for i, item in enumerate(several))
    return (_launch(fields.take("launch", dict, {}), f"{where}: launch"),)


def _launch(data: object, where: str) -> Launch:
    fields = _Fields(data, where)
    aliased = _Fields(fields.take("aliased", dict, {}), f"{where}: aliased")
    begin, end = aliased.take("bytes", list, [0, 0])
    return Launch(
        kernel=fields.take("kernel", str, ""),
        tiles=tuple(str(extent) for extent in fields.take("tiles", list, [])),
        grid=tuple(str(extent) for extent in fields.take("grid", list, [])),
        threads=fields.take("threads", int, 0),
        shared_bytes=fields.take("shared_bytes", int, 0),
        shared_limit=fields.take("shared_limit", int, 0),
        aliased=(begin, end),
        lifetimes=tuple((first, last) for first, last in aliased.take("lines", list, [])),
    )


def _fact(data: object, where: str) -> Fact:
    fields = _Fields(data, where)
    return Fact(
        about=fields.take("about", str, ""),
        what=fields.take("what", str, ""),
        value=str(fields.data.get("value", "")),
        rule=fields.take("rule", str, ""),
        line=fields.take("line", int, 0),
    )


def _lines(data: list[Any], where: str) -> tuple[tuple[int, int], ...]:
    pairs = []
    for item in data:
        if not (isinstance(item, list) and len(item) == 2 and all(type(number) is int for number in item)):
            raise ManifestError("T2C-R002", f"{where}: `lines` has {item!r}, not a pair [.cu line, Python line]")
        pairs.append((item[0], item[1]))
    if any(a[0] >= b[0] for a, b in zip(pairs, pairs[1:], strict=False)):
        raise ManifestError("T2C-R002", f"{where}: `lines` is not in ascending order of .cu lines")
    return tuple(pairs)


def _check(manifest: Manifest, where: str) -> None:
    """Checks the consistency of the fields."""
    for problem in _problems(manifest):
        raise ManifestError("T2C-R002", f"{where}: {problem}")


def _problems(manifest: Manifest) -> Iterator[str]:
    names = [argument.name for argument in manifest.arguments]
    if not _IDENTIFIER.fullmatch(manifest.entry):
        yield f"{manifest.entry!r} is not a C identifier"
    for name in names:
        if not name.isidentifier():
            yield f"{name!r} is not a Python identifier"
    if not _TARGET.fullmatch(manifest.target):
        yield f"`target` is {manifest.target!r}"
    if len(set(names)) != len(names):
        yield "two arguments have the same name"
    if manifest.arguments != (*manifest.called, *manifest.sizes):
        yield "a size precedes a tensor or scalar"
    yield from _shape_problems(manifest)
    for index in manifest.outputs:
        argument = manifest.arguments[index] if type(index) is int and 0 <= index < len(names) else None
        if not isinstance(argument, TensorArgument) or not argument.written:
            yield f"output {index!r} is not the index of a written tensor"


def _shape_problems(manifest: Manifest) -> Iterator[str]:
    known = {size.name for size in manifest.sizes}
    known |= {each.name for each in manifest.arguments if isinstance(each, ScalarArgument)}
    for tensor in manifest.tensors:
        for extent in (*tensor.shape, *tensor.strides):
            if unknown := sorted(extent.names - known):
                yield f"the shape of `{tensor.name}` uses `{unknown[0]}`, which is neither a size nor a scalar"
