"""The application: its routes, and how faults become answers. Open this file first.

A request passes the guard (``guard``), is checked (``requests``), becomes prompts (``prompts``) and sampling settings
(``wishes``), is queued as texts at work (``work``) and answered whole or in chunks (``forms``, ``streams``).
"""

import logging
import re
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outrider import __version__
from outrider.server.context import Context
from outrider.server.faults import ApiError, ErrorBody, invalid
from outrider.server.guard import Guard
from outrider.server.logs import LOGGER
from outrider.server.routes import page_routes, text_routes, token_routes, watch_routes
from outrider.server.streams import GONE, GoneError

LOG = logging.getLogger(LOGGER)
FAULTS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody} for status in (400, 401, 404, 405, 408, 413, 421, 429, 503, 504)
}
# How pydantic names a member of a union in the place of a fault: no part of the request.
_TAG = re.compile(r"str|int|float|bool|none|(list|dict|constrained|function|nullable)[-\[].*|[A-Z]\w*")
KINDS = {404: "not_found_error", 405: "invalid_request_error"}


def make_app(context: Context) -> FastAPI:
    """Return the application over an engine.

    Args:
        context: engine, prompts, settings, measures.
    """
    app = FastAPI(
        title="Outrider",
        version=__version__,
        description="The OpenAI API over an engine with speculative decoding that is exact and explains itself.",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        responses=FAULTS,
    )
    for routes in (text_routes, token_routes, watch_routes, page_routes):
        app.include_router(routes(context))
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(GoneError, _gone)
    app.add_exception_handler(Exception, _unforeseen)
    app.add_middleware(Guard, settings=context.settings, measures=context.measures)
    return app


async def _api_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)  # noqa: S101 -- it is registered for them
    return JSONResponse(error.body.model_dump(), error.status, error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    """Say what was wrong with the first field that was."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 -- it is registered for them
    first = _telling(error.errors())
    place = [str(part) for part in first["loc"] if part != "body" and not _TAG.fullmatch(str(part))]
    param = ascii(".".join(place))[1:-1][:200] or None
    if first["type"] == "extra_forbidden":
        message = f"Unknown field {param!r}: expected one that the API has; drop it."
    elif first["type"] == "json_invalid":
        message, param = "The body is not valid JSON: expected an object in UTF-8.", None
    else:
        message = f"Field {param or 'body'}: {ascii(first['msg'])[1:-1]}."
    return await _api_error(request, invalid(message, param=param))


def _telling(errors: Sequence[Any]) -> Any:
    """Return the fault to tell of the first field: of a union's, that of the member whose type was meant."""
    field = errors[0]["loc"][:2]
    return next((one for one in errors if one["loc"][:2] == field and not one["type"].endswith("_type")), errors[0])


async def _http(request: Request, error: Exception) -> Response:
    """Answer what the framework refuses: a path that is not there, a method, a body that is no text."""
    assert isinstance(error, HTTPException)  # noqa: S101 -- it is registered for them
    if isinstance(error.__cause__, ApiError):  # the guard's, raised while the body was read
        return await _api_error(request, error.__cause__)
    said = f"{request.method} {request.url.path[:200]!a}: {error.detail}. GET /openapi.json lists what there is."
    told = ApiError(error.status_code, said, kind=KINDS.get(error.status_code, "invalid_request_error"))
    return JSONResponse(told.body.model_dump(), told.status, error.headers)


async def _gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=GONE)


async def _unforeseen(_request: Request, error: Exception) -> Response:
    """Answer a fault of ours, of which the log has the rest."""
    LOG.error("fault", exc_info=error)
    message = "A fault of the server, which is in its log under this answer's X-Request-ID; please report it."
    return JSONResponse(ApiError(500, message, kind="server_error", code="fault").body.model_dump(), 500)
