"""Alert rules for Prometheus; `oncekey observe alerts` prints them."""
