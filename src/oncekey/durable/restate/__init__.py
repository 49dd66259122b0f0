"""The engine on a store that has executions run by itself: Restate calls whoever can run them."""
