"""The OpenAPI document of the edge, and those of services behind it, annotated."""
