"""A kernel with run-time sizes whose tiles are chosen for the sizes of each call."""

from collections.abc import Callable, Mapping
from typing import Any

from tile2cu.chooser.choose import NoModel
from tile2cu.choosing import Tunable
from tile2cu.core.choice import Choice, Setting
from tile2cu_runtime.arguments import call_sizes
from tile2cu_runtime.kernel import Kernel
from tile2cu_runtime.spec import Manifest


class KernelBySize:
    """Calls the kernel whose tiles the model chooses for the sizes of the call.

    Each kernel takes any size: kernels are built as new settings are chosen, a few for all sizes. `choices` are those
    made so far, by the sizes in the manifest's order. A kernel that the model does not predict keeps its file's values.
    """

    def __init__(self, tunable: Tunable, kernel_of: Callable[[Mapping[str, int]], Kernel]) -> None:
        self.choices: dict[tuple[int, ...], Choice | None] = {}
        self._tunable, self._kernel_of = tunable, kernel_of
        self._kernels: dict[Setting, Kernel] = {}
        self._of_sizes: dict[tuple[int, ...], Kernel] = {}
        self._first = self._built(())

    @property
    def manifest(self) -> Manifest:
        """Of the kernel with its file's values."""
        return self._first.manifest

    @property
    def kernels(self) -> Mapping[Setting, Kernel]:
        """The kernels that were built, by their settings; the file's own is empty."""
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
        try:
            choice = self._tunable.choice(sizes)
        except NoModel:
            self.choices[values] = None
            return self._first
        self.choices[values] = choice
        return self._first if choice.setting == choice.default else self._built(choice.setting)

    def _built(self, setting: Setting) -> Kernel:
        if setting not in self._kernels:
            self._kernels[setting] = self._kernel_of(dict(setting))
        return self._kernels[setting]
