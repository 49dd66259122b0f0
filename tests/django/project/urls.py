"""Where the views are."""

from django.contrib import admin
from django.urls import include, path
from rest_framework.routers import SimpleRouter

from tests.django.project import rest, views

router = SimpleRouter()
router.register("charges", rest.Charges)

urlpatterns = [
    path("plain/", views.plain),
    path("required/", views.required),
    path("answers/<int:status>/", views.answers),
    path("raises/<str:kind>/", views.raises),
    path("exactly-once/", views.exactly_once),
    path("killed-once/", views.killed_once),
    path("durable/", views.durable),
    path("awaited/", views.awaited),
    path("methods/", views.Methods.as_view()),
    path("whole/", views.Whole.as_view()),
    path("awaited-whole/", views.AwaitedWhole.as_view()),
    path("template/", views.template),
    path("stream/", views.stream),
    path("file/", views.file),
    path("large/", views.large),
    path("events/", views.events),
    path("awaited-events/", views.awaited_events),
    path("upload/", views.upload),
    path("checked-form/", views.checked_form),
    path("bare/", views.bare),
    path("slow/", views.slow),
    path("attached/", views.attached),
    path("rest/", include(router.urls)),
    path("rest/sensitive/", rest.Sensitive.as_view()),
    path("rest/function/", rest.function),
    path("admin/", admin.site.urls),
]
