"""Who is calling: credentials in, a caller out."""
