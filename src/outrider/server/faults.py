"""What the API answers when it cannot do what was asked: OpenAI's shape, with what was expected, found, and to do."""

from collections.abc import Mapping

from pydantic import BaseModel


class ErrorDetail(BaseModel):
    """One fault.

    Attributes:
        param: the field of the request that it is about.
        code: for programs.
    """

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """The body of every answer that is no success."""

    error: ErrorDetail


class ApiError(Exception):
    """Ends a request with an error answer.

    Args:
        status: of HTTP.
        message: for a person.
        kind: OpenAI's ``type``.
        param: the field that it is about.
        code: for programs.
        headers: of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})
        self.detail = ErrorDetail(message=message, type=kind, param=param, code=code)

    @property
    def body(self) -> ErrorBody:
        """What is sent."""
        return ErrorBody(error=self.detail)


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> ApiError:
    """Return the error of a request that contradicts itself or the model."""
    return ApiError(400, message, param=param, code=code)


def unavailable(message: str, *, retry_s: float) -> ApiError:
    """Return the error of a server that cannot work now and will soon."""
    headers = {"Retry-After": str(max(1, round(retry_s)))}
    return ApiError(503, message, kind="server_error", code="engine_unavailable", headers=headers)


def overloaded(message: str, *, retry_s: float) -> ApiError:
    """Return the error of a queue that is full."""
    headers = {"Retry-After": str(max(1, round(retry_s)))}
    return ApiError(429, message, kind="rate_limit_error", code="queue_full", headers=headers)


def too_late(seconds: float) -> ApiError:
    """Return the error of a request that took longer than any may."""
    message = f"The request was not done within {seconds:g} s, the server's limit (--deadline); it was cancelled."
    return ApiError(
        504, f"{message} Ask for fewer tokens, or try when fewer wait.", kind="timeout_error", code="timeout"
    )
