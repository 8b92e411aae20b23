"""NVRTC through its C interface: the versions below .nvrtc/ in the checkout, each with its toolkit's headers."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LIBC = ctypes.CDLL(None)
_LIBC.uselocale.argtypes, _LIBC.uselocale.restype = [ctypes.c_void_p], ctypes.c_void_p


@dataclass(frozen=True, kw_only=True)
class Nvrtc:
    """One version: its library and the folders of its toolkit's headers."""

    name: str
    library: Path
    includes: tuple[Path, ...]

    def compile(self, text: Path, arch: str, *includes: Path, to_code: bool = True) -> str:
        """Compiles a source to machine code, with the kernel template instances that its launcher uses; returns NVRTC's
        log.

        With `to_code=False` it is only parsed and instantiated, in a tenth of the time. Raises an AssertionError with
        the log if NVRTC rejects it, or if the code contains no kernel.
        """
        source = text.read_text(encoding="ascii")
        folders = [*includes, *self.includes]
        # -default-device: NVRTC before 13 takes a generic lambda for a function of the host.
        options = ["-std=c++17", f"-arch={arch}", "-default-device", *(f"-I{folder}" for folder in folders)]
        options += [] if to_code else ["-fdevice-syntax-only"]
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        nvrtc = _library(self.library)
        with _program(nvrtc, source, text.name) as program:
            for name in kernel_names(source):
                assert nvrtc.nvrtcAddNameExpression(program, name.encode()) == 0
            failed = nvrtc.nvrtcCompileProgram(program, len(options), array)
            log = _bytes(nvrtc, program, "ProgramLog").rstrip(b"\0\n").decode()
            assert not failed, f"NVRTC {self.name}, {text}\n{log[:8000]}"
            assert not to_code or b".text." in _bytes(nvrtc, program, "CUBIN"), f"no kernel in {text}"
        return log


def versions() -> list[Nvrtc]:
    """Those that `pip install --target .nvrtc/NAME 'cuda-toolkit[nvrtc,cudart,cccl]==VERSION'` has put there."""
    found = []
    for folder in sorted((ROOT / ".nvrtc").glob("*/nvidia")):
        includes = [*folder.glob("*/include"), *folder.glob("*/include/cccl")]
        for library in folder.glob("*/lib/libnvrtc.so.*"):
            found.append(Nvrtc(name=folder.parent.name, library=library, includes=tuple(includes)))
    return found


def kernel_names(source: str) -> list[str]:
    """The instances of kernel templates that an emitted launcher starts, with their namespace."""
    names: list[str] = []
    outer, inner = "", ""
    for used, kernel in re.findall(
        r"^( *using namespace \w+;)|\b(\w+_kernel<tl::\w+(?:<\d+>)?>)", source, re.MULTILINE
    ):
        if kernel:
            names.append(f"{outer}::{inner}{kernel}")
        elif used.startswith("    "):  # in the block of one of several launches
            inner = f"{used.split()[-1][:-1]}::"
        else:
            outer, inner = used.split()[-1][:-1], ""
    return names


@functools.cache
def _library(path: Path) -> ctypes.CDLL:
    for builtins in path.parent.glob("libnvrtc-builtins.so.*"):  # 13.0 does not look beside itself
        ctypes.CDLL(str(builtins))
    return ctypes.CDLL(str(path))


@contextmanager
def _program(nvrtc: ctypes.CDLL, source: str, name: str) -> Iterator[ctypes.c_void_p]:
    program, before = ctypes.c_void_p(), _LIBC.uselocale(None)
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None) == 0
    try:
        yield program
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        _LIBC.uselocale(before)  # NVRTC leaves the thread C's, in which Python reads the output of tools as ASCII


def _bytes(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    """What nvrtcGet<what> gives: its size is asked for first."""
    size = ctypes.c_size_t()
    assert getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
    buffer = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{what}")(program, buffer) == 0
    return buffer.raw
