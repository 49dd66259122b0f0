"""One view: to order, exactly once, and to see what was ordered."""

import json

from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from oncekey.django import idempotent
from orders.models import Order


@csrf_exempt  # for clients that are not browsers
@idempotent(atomic=True)  # order and answer are committed together, or not at all
def orders(request: HttpRequest) -> JsonResponse:
    if request.method == "GET":
        return JsonResponse(list(Order.objects.values_list("item", flat=True)), safe=False)
    order = Order.objects.create(item=json.loads(request.body)["item"])
    if order.item == "dragon":
        raise RuntimeError("it is made, and then something fails")
    return JsonResponse({"order": order.pk, "item": order.item}, status=201)


urlpatterns = [path("orders/", orders)]
