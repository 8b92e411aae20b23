"""Results that are kept with the frozen data that they are computed from."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def kept(function: Callable[P, T]) -> Callable[P, T]:
    """A function of frozen objects whose results are kept in its first argument, as long as that exists.

    Further arguments count by identity: rules ask the same question about the same statement and launch many times,
    and statements are too large to compare. A result must not change, nor be an iterator.
    """
    alone = f"{function.__module__}.{function.__qualname__}"
    name = f"{alone} with"

    @wraps(function)
    def asked(*args: P.args, **options: P.kwargs) -> T:
        memory: dict[str, Any] = args[0].__dict__
        if len(args) == 1 and not options:
            if alone not in memory:
                memory[alone] = function(*args, **options)
            of_one: T = memory[alone]
            return of_one
        others = (*args[1:], *options.values())
        results: dict[tuple[object, ...], tuple[tuple[object, ...], Any]] = memory.setdefault(name, {})
        key = (*map(id, others), *options)
        known = results.get(key)
        if known is None or any(one is not other for one, other in zip(known[0], others, strict=True)):
            known = results[key] = others, function(*args, **options)
        found: T = known[1]
        return found

    return asked
