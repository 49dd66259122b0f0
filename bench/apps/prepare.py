"""Creates the tables a guard expects before its server starts: python -m bench.apps.prepare."""

import asyncio
import os


def _migrate_django() -> None:
    from django.core.management import call_command

    import bench.apps.django_app  # noqa: F401

    call_command("migrate", verbosity=0)


def _create_idemkit_tables() -> None:
    from idemkit.backends.postgres import init_pg

    asyncio.run(init_pg(os.environ["BENCH_POSTGRES_URL"]))


def main() -> None:
    if os.environ["BENCH_FRAMEWORK"] == "django":
        _migrate_django()
    elif os.environ["BENCH_GUARD"] == "idemkit-postgres":
        _create_idemkit_tables()


if __name__ == "__main__":
    main()
