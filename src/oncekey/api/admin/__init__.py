"""The API of admins: their own keys, and every change they make in the audit feed."""
