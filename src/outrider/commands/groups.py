"""Groups of options: a command names a group once, and gets all of its options, filled in.

A group is a dataclass whose fields are typer options. Nothing here knows which groups there are.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Turn each parameter that is annotated with a group into the options of that group.

    An instance of the group as the parameter's default gives the defaults of its options.
    """
    shape = signature(command)
    groups: dict[str, Any] = {
        one.name: one.annotation for one in shape.parameters.values() if is_dataclass(one.annotation)
    }

    @wraps(command)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{option.name: values.pop(option.name) for option in fields(group)})
        command(**values)

    # What typer reads of a command.
    flat = shape.replace(parameters=[option for one in shape.parameters.values() for option in _options(one)])
    call.__signature__ = flat  # type: ignore[attr-defined]
    return call


def _options(parameter: Parameter) -> Iterator[Parameter]:
    group = parameter.annotation
    if not is_dataclass(group):
        yield parameter
        return
    defaults = group() if parameter.default is Parameter.empty else parameter.default  # type: ignore[operator]
    for option in fields(group):
        default = getattr(defaults, option.name)
        yield Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=option.type)
