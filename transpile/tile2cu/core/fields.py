"""The fields of frozen data, where all parts of it are visited."""

from typing import Any


def fields_of(part: Any) -> dict[str, Any]:
    """The values of a record's fields by their names, in order."""
    return {name: getattr(part, name) for name in part.__struct_fields__}
