"""The Django app behind `oncekey.django`: one ledger per process, in the project's own database."""
