"""Three databases; which of them holds keys and charges is chosen by test or environment."""

import os
from typing import Any
from urllib.parse import urlsplit


def sqlite(name: str) -> dict[str, Any]:
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": name}


def postgres(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": parts.hostname,
        "PORT": parts.port,
        "USER": parts.username,
        "NAME": parts.path.strip("/"),
    }


SECRET_KEY = "tests"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "tests.django.project.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGGING_CONFIG = None
STATIC_URL = "/static/"
SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"

DATABASES = {
    "default": sqlite(":memory:"),
    "file": sqlite(os.environ.get("PROJECT_SQLITE", "never-made.db")),
    "postgres": postgres(
        os.environ.get("PROJECT_POSTGRES", "postgresql://nobody@127.0.0.1:1/none")
    ),
}
DATABASE_ROUTERS = ["tests.django.project.router.OneDatabase"]
IDEMPOTENCY_DATABASE = os.environ.get("PROJECT_DATABASE", "default")
IDEMPOTENCY_LEASE_SECONDS = float(os.environ.get("PROJECT_LEASE", "15"))

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "rest_framework",
    "oncekey.django",
    "tests.django.project.apps.ProjectConfig",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.BasicAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
}
