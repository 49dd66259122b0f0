"""Dashboards for Grafana; `oncekey observe dashboard` prints them."""
