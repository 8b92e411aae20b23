"""`os.environ`: emitted source does not depend on who emits it, so only variables given with --env are set."""

from collections.abc import Mapping
from types import MappingProxyType

from tile2cu.core.origin import ENVIRONMENT
from tile2cu.core.span import Span
from tile2cu.frontend.context import Context
from tile2cu.frontend.values import Builtin, Instance, Opaque


def _default(cx: Context, name: object, default: object = None) -> object:
    """`os.environ.get(name, default)`."""
    variable = f"{ENVIRONMENT}{name}"
    cx.bindings.known[variable] = None
    return cx.environment.get(variable, default)


def variable(cx: Context, name: object, span: Span, code: str) -> object:
    """`os.environ[name]`."""
    value = _default(cx, name)
    if value is not None:
        return value
    return Opaque(code, span, help=f"set the variable with --env {name}=VALUE; the environment is not read")


_GET: Mapping[str, object] = {"get": Builtin("os.environ.get", _default)}
ENVIRON = Instance("os.environ", dict(_GET))
OS: Mapping[str, object] = MappingProxyType({"environ": ENVIRON, "getenv": Builtin("os.getenv", _default)})
