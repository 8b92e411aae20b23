"""`with manager as name:` of a class of the file: what its methods do is before and after the block."""

from collections.abc import Callable

import libcst as cst

from tile2cu.frontend.attributes import attribute
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import apply
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.values import Arguments, Instance, describe


def run(cx: Context, manager: object, item: cst.WithItem, block: Callable[[object], None]) -> None:
    """Enters the manager, runs the block with what `__enter__` gives, and leaves. Raises Fault T2C-F012 for others."""
    methods = manager.of.values if isinstance(manager, Instance) and manager.of is not None else {}
    if not isinstance(manager, Instance) or not {"__enter__", "__exit__"} <= methods.keys():
        raise Fault("T2C-F012", f"`with` of {describe(manager)} is not supported here")

    def call(name: str, *given: object) -> object:
        method = attribute(cx, manager, name, f"{manager.name}.{name}")
        return apply(cx, method, Arguments(given), item.item)

    block(call("__enter__"))
    call("__exit__", None, None, None)
