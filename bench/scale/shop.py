"""What the soak serves: orders answered at once, and orders that wait for a payment."""

from datetime import timedelta

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from oncekey import App, Context

KEPT = timedelta(seconds=60)

flows = App()


async def create(request: Request) -> JSONResponse:
    return JSONResponse({"id": "ord_1", "order": await request.json()}, status_code=201)


async def reserve(number: str) -> str:
    return f"reserved {number}"


@flows.workflow(keep=KEPT)
async def order(ctx: Context, number: str) -> str:
    await ctx.run("reserve", reserve, number)
    await ctx.promise("payment", key=f"pay:{number}", key_ttl=KEPT, timeout=timedelta(minutes=5))
    return f"{number} is paid"


app = Starlette(routes=[Route("/orders", create, methods=["POST"])])
