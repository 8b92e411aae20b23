"""Results that are kept with the frozen data that they are computed from."""

import operator
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


def kept(function: Callable[P, T]) -> Callable[P, T]:
    """A function of frozen objects whose results are kept in its first argument, as long as that exists.

    Further arguments count by identity: rules ask the same question about the same statement and launch many times,
    and statements are too large to compare. A result must not change, nor be an iterator.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    code = cast(FunctionType, function).__code__

    if code.co_argcount + code.co_kwonlyargcount == 1:

        @wraps(function)
        def asked_alone(first: Any) -> Any:
            memory: dict[str, Any] = first.__dict__
            if name not in memory:
                memory[name] = function(first)  # type: ignore[call-arg]
            return memory[name]

        return cast(Callable[P, T], asked_alone)

    @wraps(function)
    def asked(first: Any, *further: Any, **options: Any) -> Any:
        memory: dict[str, Any] = first.__dict__
        others = (*further, *options.values())
        results: dict[tuple[object, ...], tuple[tuple[object, ...], Any]] = memory.setdefault(name, {})
        key = (*map(id, others), *options)
        known = results.get(key)
        if known is None or not all(map(operator.is_, known[0], others)):
            known = results[key] = others, function(first, *further, **options)
        return known[1]

    return cast(Callable[P, T], asked)
