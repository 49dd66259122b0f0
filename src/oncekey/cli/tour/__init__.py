"""The tour that `oncekey demo` gives: a shop, a bank behind it, and what goes wrong in between."""
