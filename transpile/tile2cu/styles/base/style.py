"""What a style is: how it writes kernels. The file around them, its head and its launcher, is the same in every one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from tile2cu.core.schedule import Multiple
from tile2cu.plan.resolved import Resolved
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.view import KernelParts, Limit
from tile2cu.targets import Target


class Style(ABC):
    """Writes kernels in one vocabulary. What is not abstract is so in styles that state nothing else."""

    uses = ""  # a using-directive of the kernel's namespace
    functor = False  # whether a kernel is the operator() of a functor, whose arguments are one struct, `Kargs`
    is_partial = True  # whether it lacks some of what the rules decide: writing such a kernel raises T2C-E034
    offset_bits = 64  # of an element's offset in a tensor
    printing: str  # how a reader prints a tile from within a kernel, in a sentence
    printing_own = ""  # how he prints a tile that one warpgroup has of its own, where that differs
    checked_by: str  # the option with which `tile2cu run` executes the kernel: empty for the CPU engine and its checks
    unaligned: str  # what accesses of rows without a known alignment do, in the instance for any
    library = ""  # the folder of a library that the source includes besides headers/tl, and the library
    flags = ""  # the options that nvcc needs for it
    types: ClassVar[Mapping[str, str]] = {}  # a library's names of element types, by those of headers/tl

    def reserved(self, constants: frozenset[str]) -> frozenset[str]:
        """The names that no name of the user's may hide, and those of his `constants` that would be ambiguous."""
        return frozenset()  # all names of headers/tl are qualified

    def limits(self, launches: tuple[Resolved, ...], printer: Printer) -> tuple[Limit, ...]:
        """What the style's kernels ask of run-time sizes, besides what every launcher checks."""
        return ()

    def multiples(self, resolved: Resolved) -> tuple[Multiple, ...]:
        """More conditions on run-time sizes under which the launcher chooses 16-byte accesses."""
        return ()

    def word_multiples(self, resolved: Resolved) -> tuple[Multiple, ...]:
        """Conditions on run-time sizes under which the launcher chooses an instance of 4-byte accesses, where it does
        not choose the one for aligned rows; none without such an instance.
        """
        return ()

    def seen(self, target: Target) -> Target:
        """The target as the style's vocabulary reaches it: rules decide for no instruction that it has no words for."""
        return target

    @abstractmethod
    def check(self, launches: tuple[Resolved, ...]) -> None:
        """Errors: T2C-E034 where the style does not support the target, or what the launches have as a whole."""

    @abstractmethod
    def headers(self, launches: tuple[Resolved, ...]) -> tuple[str, ...]:
        """What the source includes of headers/tl."""

    def map_notes(self, maps: Mapping[int, TensorMap]) -> tuple[str, ...]:
        """What a reader of a kernel's declaration has to know of its tensor maps."""
        return ()

    def map_parameter(self, view: TensorMap) -> str:
        """A tensor map as a kernel's parameter; not called by targets without TMA."""
        raise NotImplementedError

    def map_argument(self, view: TensorMap, printer: Printer) -> str:
        """The launcher's expression that makes it."""
        raise NotImplementedError

    @abstractmethod
    def parts(self, resolved: Resolved, printer: Printer, maps: Mapping[int, TensorMap]) -> KernelParts:
        """One kernel; `maps` by the id of the statement. Errors: T2C-E034 for an operation it does not support."""
