"""Orders to look at."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def create_order(request: Request) -> JSONResponse:
    return JSONResponse(await request.json(), status_code=201)


app = Starlette(routes=[Route("/orders", create_order, methods=["POST"])])
