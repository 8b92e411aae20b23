"""Values for open sizes by their names alone: what the rest of a file states of parameters that are called the same.

The last resort, where no call of the kernel itself can be read: its tensors come from a library, say. A value found
here carries in its origin what it was taken from.
"""

from collections.abc import Iterable, Mapping

from tile2cu.core.dtype import DType
from tile2cu.core.span import Span
from tile2cu.frontend.context import DEFAULT_OF, Context, Found
from tile2cu.frontend.values import Function


def namesakes(
    cx: Context,
    functions: Iterable[Function],
    called: Mapping[str, Found],
    leads: frozenset[str],
    variables: Mapping[str, Found],
) -> dict[str, Found]:
    """The values of parameters and options, by name.

    In order: arguments of the file's other kernels (`called`), options of its command line, defaults of functions;
    among those `main` comes first, then those that lead to the kernel (`leads`); global `variables` of the driver.
    """
    options = {name: Found(value, span, "option") for name, (value, span) in cx.options.items()}
    plain = sorted(functions, key=lambda function: (function.name != "main", function.name not in leads))
    defaults: dict[str, Found] = {}
    for function in plain:
        for name, value in function.defaults.items():
            defaults.setdefault(name, Found(value, _place(cx, function, name), f"{DEFAULT_OF} `{function.name}`"))
    merged = dict(variables) | defaults | options | dict(called)
    return {name: found for name, found in merged.items() if _is_value(found.value)}


def _place(cx: Context, function: Function, name: str) -> Span:
    params = function.node.params
    listed = (*params.posonly_params, *params.params, *params.kwonly_params)
    return cx.source.span(next((param for param in listed if param.name.value == name), function.node))


def _is_value(value: object) -> bool:
    """A number or a type; flags and texts say too little by their names alone."""
    return isinstance(value, int | float | DType) and not isinstance(value, bool)
