"""One migration per version of the store's tables; the SQL itself is the store's."""
