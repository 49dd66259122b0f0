"""What a workflow, a task or a step takes and gives: read from its function, kept as JSON."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, Self, get_args, get_origin
from weakref import WeakKeyDictionary

import msgspec

from oncekey.core.errors import ConfigurationError, InvalidInput, PayloadTooLarge
from oncekey.durable.annotations import hints_of
from oncekey.durable.engine import MAX_PAYLOAD
from oncekey.durable.values import decode, encode, reader_of

_REQUIRED = inspect.Parameter.empty
_POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}

_split = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Parameter(NamedTuple):
    name: str
    kind: Any
    default: Any
    what: str
    """Its name in an error."""


class Signature(NamedTuple):
    """One parameter: the input is its value. Several: an array of them. None: null."""

    name: str
    parameters: tuple[Parameter, ...] | None
    """None when the function is not here, and so anything may fit."""
    result: Any

    @classmethod
    def anything(cls) -> Self:
        return cls("the function", None, Any)


# -- reading ---------------------------------------------------------------------------------


def signature_of(function: Callable[..., Any], skip: int = 0) -> Signature:
    """`skip`: how many parameters are not input, such as the context of a workflow.

    Raises `ConfigurationError` when a parameter cannot be given from JSON.
    """
    name = getattr(function, "__name__", type(function).__name__)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"the parameters of {name} cannot be found out") from error
    for each in parameters:
        _check_parameter(name, each)
    taken = [each for each in parameters if each.kind in _POSITIONAL]
    if len(taken) < skip:
        raise ConfigurationError(f"{name} must take a context first: async def {name}(ctx, …)")
    hints = hints_of(function)
    inputs = tuple(_parameter_of(name, each, hints) for each in taken[skip:])
    return Signature(name, inputs, _result_type(hints))


def result_type_of(function: Callable[..., Any]) -> Any:
    """The type of what a function returns, or will have returned; Any when it does not tell."""
    try:
        return _results[function]
    except (KeyError, TypeError):
        pass
    kind = _result_type(hints_of(function))
    try:
        _results[function] = kind
    except TypeError:
        # There are callables that cannot be remembered; asking them again is all that is lost.
        return kind
    return kind


_results: WeakKeyDictionary[Callable[..., Any], Any] = WeakKeyDictionary()


def _check_parameter(name: str, parameter: inspect.Parameter) -> None:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        raise ConfigurationError(f"{name} takes *{parameter.name}: name what it takes one by one")
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.default is _REQUIRED:
        raise ConfigurationError(
            f"{name} needs {parameter.name!r} by keyword: input is given by position; move it "
            "before the *, or give it a default"
        )


def _parameter_of(name: str, parameter: inspect.Parameter, hints: dict[str, Any]) -> Parameter:
    what = f"the parameter {parameter.name!r} of {name}"
    kind = hints.get(parameter.name, Any)
    try:
        reader_of(kind)
    except ConfigurationError as error:
        raise ConfigurationError(f"{what}: {error}") from error
    return Parameter(parameter.name, kind, parameter.default, what)


def _result_type(hints: dict[str, Any]) -> Any:
    kind = hints.get("return", Any)
    if get_origin(kind) in {Awaitable, Coroutine}:
        kind = get_args(kind)[-1]
    try:
        reader_of(kind)
    except ConfigurationError:
        return Any
    return kind


# -- arguments -------------------------------------------------------------------------------


def pack_arguments(signature: Signature, args: tuple[Any, ...]) -> bytes:
    """The input that stands for `args`. Defaults are written down: they may change in the code.

    Raises `InvalidInput` for a wrong count or type, and what `encode` does.
    """
    parameters = signature.parameters
    if parameters is None:
        bodies = [encode(each, "the input") for each in args]
    else:
        if len(args) != len(parameters):
            args += _defaults(signature, len(args))
        bodies = [_packed(each, value) for each, value in zip(parameters, args, strict=True)]
    if len(bodies) == 1:
        return bodies[0]
    body = b"[" + b",".join(bodies) + b"]" if bodies else b"null"
    if len(body) > MAX_PAYLOAD:
        raise PayloadTooLarge(
            f"the input of {signature.name} has {len(body)} bytes; {MAX_PAYLOAD} are allowed"
        )
    return body


def unpack_arguments(signature: Signature, body: bytes) -> tuple[Any, ...]:
    """The arguments an input stands for; those that are left to their defaults are not among them.

    Raises `InvalidInput`.
    """
    parameters = signature.parameters
    if parameters is None:
        return (decode(body, Any, "the input"),)
    if len(parameters) == 1:
        return _unpacked(parameters[0], body)
    if not parameters:
        if body.strip() != b"null":
            raise InvalidInput(f"{signature.name} takes no input; give null")
        return ()
    try:
        parts = _split(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        names = _names(signature)
        raise InvalidInput(f"the input of {signature.name} must be an array: {names}") from error
    if len(parts) != len(parameters):
        _defaults(signature, len(parts))
    pairs = zip(parameters, parts, strict=False)
    return tuple([decode(bytes(part), each.kind, each.what) for each, part in pairs])


def _defaults(signature: Signature, given: int) -> tuple[Any, ...]:
    """Those of the parameters that are not given."""
    parameters = signature.parameters or ()
    defaults = tuple([each.default for each in parameters[given:]])
    if given > len(parameters) or any(each is _REQUIRED for each in defaults):
        takes = f"takes {_names(signature)}" if parameters else "takes no input"
        raise InvalidInput(f"{signature.name} {takes}, and was given {given} arguments")
    return defaults


def _names(signature: Signature) -> str:
    return f"[{', '.join(each.name for each in signature.parameters or ())}]"


def _packed(parameter: Parameter, value: Any) -> bytes:
    body = encode(value, parameter.what)
    if type(value) is not parameter.kind and parameter.kind is not Any:
        # What could not be read back is refused here, where the mistake is.
        decode(body, parameter.kind, parameter.what)
    return body


def _unpacked(parameter: Parameter, body: bytes) -> tuple[Any, ...]:
    try:
        return (decode(body, parameter.kind, parameter.what),)
    except InvalidInput:
        if parameter.default is not _REQUIRED and body.strip() == b"null":
            return ()
        raise
