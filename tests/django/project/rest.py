"""The same with REST framework."""

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import ModelViewSet

from oncekey.django import IdempotentMixin, idempotent
from tests.django.project.models import Charge


class ChargeSerializer(serializers.ModelSerializer):
    class Meta:
        model = Charge
        fields: ClassVar = ["id", "amount"]


class Charges(IdempotentMixin, ModelViewSet):
    idempotency: ClassVar = {"required": True}
    queryset = Charge.objects.all()
    serializer_class = ChargeSerializer
    permission_classes: ClassVar = [IsAuthenticated]


class ReadsBody(BasePermission):
    """A permission that looks into the body before anybody else."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return request.data.get("amount") is not None


class Busy(APIException):
    status_code = 503


class Sensitive(IdempotentMixin, APIView):
    idempotency: ClassVar = {"atomic": True}
    permission_classes: ClassVar = [ReadsBody]

    def post(self, request: Request) -> Response:
        made = Charge.objects.create(amount=request.data["amount"])
        match request.query_params.get("then"):
            case "invalid":
                raise ValidationError({"amount": ["too much"]})
            case "busy":
                raise Busy
            case "crash":
                raise RuntimeError("a bug")
        return Response({"charge": made.pk}, status=201)


@api_view(["POST"])
@idempotent
def function(request: Request) -> Response:
    made = Charge.objects.create(amount=request.data["amount"])
    return Response({"charge": made.pk}, status=201)
