"""The project under a real server."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.project.settings")
application = get_wsgi_application()
