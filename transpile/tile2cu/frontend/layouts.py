"""Layouts that a file asks for: where the elements of a buffer lie.

Layouts of tiles never change a result, and the rules choose their own: they are read and dropped, once it is known that
each element of a shared tile has a place of its own. A layout of a tensor
in global memory is part of what a kernel means: see placement.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tile2cu.core.program import Buffer, Scope
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.injective import require_injective
from tile2cu.frontend.placement import placement
from tile2cu.frontend.values import Builtin, Function, Instance, Layout, describe


def _layout(name: str) -> Callable[..., object]:
    def run(cx: Context, *arguments: object, **options: object) -> object:
        """A layout: an object of which nothing is known but that it is one."""
        methods = ("repeat", "replicate", "condense_rep_var", "reshape", "inverse", "repeat_on_thread", "expand")
        function = next((value for value in (*arguments, *options.values()) if isinstance(value, Function)), None)
        if name.endswith("Layout") and function is not None:
            return Layout(function)
        layout = Instance(name)
        layout.values.update({method: Builtin(f"{name}.{method}", run) for method in methods})
        return layout

    return run


def annotate_layout(cx: Context, layouts: object, **options: object) -> None:
    """`T.annotate_layout({tile: layout})`: the rules choose the layouts of tiles themselves."""
    cx.recorder.require_kernel("T.annotate_layout")
    if not isinstance(layouts, dict):
        raise Fault("T2C-F023", f"T.annotate_layout takes a dict of layouts, not {describe(layouts)}")
    for buffer in layouts:
        if not isinstance(buffer, Buffer):
            raise Fault("T2C-F023", f"T.annotate_layout names {describe(buffer)}, not a buffer")
        if buffer.scope is Scope.GLOBAL:
            layout = layouts[buffer]
            if not isinstance(layout, Layout):
                raise Fault(
                    "T2C-F011",
                    f"`{buffer.name}` is a tensor in global memory; such a layout of it is not supported yet",
                    help="write T.Layout(shape, lambda i, j: ...)",
                )
            cx.recorder.placements[buffer.name] = placement(cx, buffer, layout)
        elif buffer.scope is Scope.SHARED and isinstance(layouts[buffer], Layout):
            require_injective(cx, buffer, layouts[buffer])


_NAMES = (
    "make_swizzled_layout make_full_bank_swizzled_layout make_half_bank_swizzled_layout "
    "make_quarter_bank_swizzled_layout make_linear_layout make_wgmma_swizzled_layout make_volta_swizzled_layout "
    "make_cutlass_metadata_layout make_fully_replicated_layout_fragment make_tcgen05mma_swizzled_layout"
)
FUNCTIONS: Mapping[str, object] = MappingProxyType(
    {name: Builtin(name, _layout(name)) for name in _NAMES.split()}
    | {name: Builtin(name, _layout(name)) for name in ("Layout", "Fragment")}
)
LANGUAGE: Mapping[str, Callable[..., object]] = MappingProxyType(
    {name: _layout(f"T.{name}") for name in ("Layout", "Fragment", "make_swizzled_layout")}
    | {"annotate_layout": annotate_layout}
)
