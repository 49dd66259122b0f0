"""What operators look at, on a store with a million keys: filled in bulk, then asked."""
