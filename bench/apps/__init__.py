"""The applications under load: one trivial handler per framework, bare or behind a guard."""
