"""The user's names in C++: kept, unless C++ or the emitted file needs them itself."""

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from types import MappingProxyType

from tile2cu.core.program import Program

_CPP_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const
const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern false
float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
protected public register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
while xor xor_eq
"""
_KEYWORDS = frozenset(_CPP_KEYWORDS.split())
_OUR_NAMES = (
    "tl std main half load store Shared shared Alignment chosen grid stream threads pipeline full barriers "
    "prologue_full waves_per_simd_by_registers "
    "workspace workspace_bytes tensors device status random least_blocks loads_per_iteration written_stages"
)
_OURS = frozenset(_OUR_NAMES.split())
_CUDA = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "dim3", "min", "max", "exp", "log"))
# Those that the emitted file's global namespace has already, or that C, which reads the header too, has as keywords.
_GLOBAL_NAMES = "tl std main half tl_status Shared threadIdx blockIdx blockDim gridDim warpSize restrict"
_GLOBAL = frozenset(_GLOBAL_NAMES.split())
_OF_THE_USER = re.compile(r"(?!__|_[A-Z])[A-Za-z_]")  # how a name begins that compilers leave to users
_C_NAME = re.compile(_OF_THE_USER.pattern + r"[A-Za-z0-9_]*")
# Those names of the global namespace that launchers use: types, and what the runtimes and headers/tl/status.h have.
_OF_LAUNCHERS = re.compile(r"(cuda|hip|CU|tl_|TL_)\w*|\w+_t")
_LONGEST = 180  # characters of a name that files have, with endings such as _tvm_ffi.cpp: 255 bytes on Linux
_C_NAMES = Path(__file__).with_name("c_names.txt")  # by tools/c_names.py


@functools.cache
def c_names() -> tuple[frozenset[str], frozenset[str]]:
    """The macros, and the other names of the global namespace, that C, C++, CUDA and HIP have."""
    macros, others = re.split(r"^#.*\n", _C_NAMES.read_text(encoding="ascii"), flags=re.MULTILINE)[-2:]
    return frozenset(macros.split()), frozenset(others.split())


@functools.cache
def _reserved() -> frozenset[str]:
    """The names that no user's name keeps, in any file."""
    macros, others = c_names()
    return _KEYWORDS | macros | _OURS | _CUDA | frozenset(filter(_OF_LAUNCHERS.fullmatch, others))


@functools.cache
def names_in(file: Path) -> frozenset[str]:
    """The names of a list that tools/ writes: behind a line that states its source."""
    _, *lines = file.read_text(encoding="ascii").splitlines()
    return frozenset(" ".join(lines).split())


def launchers(program: Program) -> set[str]:
    """The C functions that a program's file defines: its launcher and the launcher's queries."""
    return {program.name, f"{program.name}_supports", f"{program.name}_workspace_size"}


def global_constants(program: Program) -> frozenset[str]:
    """The names of constants that the global namespace has, too: a file's constants are in an unnamed one."""
    _, others = c_names()
    return others & {constant.name for constant in program.constants}


def can_be_c_function(name: str) -> bool:
    """Whether the launcher of a kernel can have that name, which is also that of its files."""
    macros, others = c_names()
    taken = _KEYWORDS | _GLOBAL
    return (
        _C_NAME.fullmatch(name) is not None
        and len(name) <= _LONGEST
        and not any(name in each for each in (taken, macros, others))
    )


def ascii_name(name: str) -> str:
    """A name in the letters of C: accents go, other letters are spelled out (`alpha`, `ss`)."""
    spelled = "".join(map(_spelled, unicodedata.normalize("NFKD", name)))
    return re.sub(r"\W", "_", spelled, flags=re.ASCII)


def _spelled(letter: str) -> str:
    if letter.isascii() or unicodedata.combining(letter):
        return letter if letter.isascii() else ""
    if letter.upper().isascii():  # sharp s
        return letter.upper().lower()
    kind, _, word = unicodedata.name(letter, f"letter u{ord(letter):x}").lower().rpartition("letter ")
    return word.capitalize() if "capital" in kind else word


class Names:
    """C++ names for the names of one program. The same input gives the same names.

    Each that it gives is noted as one that the C++ has, which needs its declaration; `in_comments` notes none.
    """

    def __init__(
        self,
        used: Iterable[str],
        kept: Iterable[str] = (),
        reserved: Iterable[str] = (),
        wishes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`used` are all names of the program; `kept` those that may be kept although we use them ourselves, `reserved`
        more that we use ourselves. `wishes` has what names that cannot be kept are called, by their role."""
        self._taken = set(used)
        self._wishes = wishes
        self._reserved = (_reserved() | set(reserved)) - set(kept)
        self._given: dict[str, str] = {}
        self._noted: set[str] = set()

    def __call__(self, name: str) -> str:
        """The C++ name of a user's name."""
        if name not in self._given:
            kept = name.isascii() and name not in self._reserved and _OF_THE_USER.match(name)
            self._given[name] = name if kept else self.fresh(self._wishes.get(name, name))
        return self.noting(self._given[name])

    def noting(self, text: str) -> str:
        """The text, of a declaration's name or of a function's that a comment explains, as one that the C++ has."""
        self._noted.add(text)
        return text

    @contextmanager
    def noted(self) -> Iterator[set[str]]:
        """The set of what is noted inside; it counts outside, too."""
        outside, self._noted = self._noted, set()
        yield self._noted
        outside |= self._noted
        self._noted = outside

    @property
    def in_comments(self) -> "Names":
        """The same names, for comments: what these speak of, the C++ need not have."""
        names = copy(self)
        names._noted = set()
        return names

    @contextmanager
    def called(self, others: Mapping[str, str]) -> Iterator[None]:
        """Inside, some of the user's names have other C++ names, such as those of a lambda's parameters."""
        before = {name: self(name) for name in others}
        self._given.update(others)
        yield
        self._given.update(before)

    def fresh(self, wish: str) -> str:
        """A name that nothing has yet: `wish`, or `wish_1`, `wish_2`, ..."""
        wish = ascii_name(wish).lstrip("_") or "value"
        name, number = wish, 0
        while name in self._taken or name in self._reserved:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        return name
