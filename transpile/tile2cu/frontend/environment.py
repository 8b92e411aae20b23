"""`os.environ`: emitted source does not depend on who emits it, so only variables given with --env are set."""

from collections.abc import Mapping
from types import MappingProxyType

from tile2cu.core.origin import ENVIRONMENT
from tile2cu.frontend.context import Context
from tile2cu.frontend.values import Builtin, Instance


def _default(cx: Context, name: object, default: object = None) -> object:
    """`os.environ.get(name, default)`."""
    variable = f"{ENVIRONMENT}{name}"
    cx.bindings.known[variable] = None
    return cx.environment.get(variable, default)


_GET: Mapping[str, object] = {"get": Builtin("os.environ.get", _default)}
OS: Mapping[str, object] = MappingProxyType(
    {"environ": Instance("os.environ", dict(_GET)), "getenv": Builtin("os.getenv", _default)}
)
