"""A kernel with run-time sizes whose tiles are chosen for the sizes of each call."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tile2cu.choosing import Tunable, fastest
from tile2cu.core.choice import Choice, Setting
from tile2cu_runtime.arguments import call_sizes
from tile2cu_runtime.kernel import Kernel
from tile2cu_runtime.spec import Manifest


class KernelBySize:
    """Calls the kernel whose tiles the model chooses for the sizes of the call, among those of a family.

    Each kernel takes any size: kernels are built as new settings are chosen, a few for all sizes. `choices` are those
    made so far, by the sizes in the manifest's order. A kernel that the model does not predict keeps its file's values.
    """

    def __init__(self, members: Sequence[Tunable], kernel_of: Callable[[Path, Mapping[str, int]], Kernel]) -> None:
        self.choices: dict[tuple[int, ...], Choice | None] = {}
        self._members, self._kernel_of = members, kernel_of
        self._kernels: dict[tuple[str, Setting], Kernel] = {}
        self._of_sizes: dict[tuple[int, ...], Kernel] = {}
        self._first = self._built(members[0].path, ())

    @property
    def manifest(self) -> Manifest:
        """Of the kernel with its file's values."""
        return self._first.manifest

    @property
    def kernels(self) -> Mapping[tuple[str, Setting], Kernel]:
        """The kernels that were built, by their files and settings; the file's own setting is empty."""
        return dict(self._kernels)

    def kernel_for(self, **sizes: int) -> Kernel:
        """The kernel for these run-time sizes, chosen and built where it is new."""
        values = tuple(int(sizes[size.name]) for size in self.manifest.sizes)
        if values not in self._of_sizes:
            self._of_sizes[values] = self._chosen(values, sizes)
        return self._of_sizes[values]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As Kernel.__call__. Errors: those of Kernel.__call__, and of its build."""
        given = {name: value for name, value in kwargs.items() if name != "stream"}
        return self.kernel_for(**call_sizes(self.manifest, args, given))(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tile2cu kernel {self.manifest.kernel} by size: {len(self._kernels)} built>"

    def _chosen(self, values: tuple[int, ...], sizes: Mapping[str, int]) -> Kernel:
        place, choice = fastest(self._members, sizes)
        self.choices[values] = choice
        own = choice is None or choice.setting == choice.default
        return self._built(self._members[place].path, () if choice is None or own else choice.setting)

    def _built(self, path: Path, setting: Setting) -> Kernel:
        key = (path.name, setting)
        if key not in self._kernels:
            self._kernels[key] = self._kernel_of(path, dict(setting))
        return self._kernels[key]
