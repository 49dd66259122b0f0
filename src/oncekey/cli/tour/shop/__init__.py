"""What the tour serves: these files are copied into its folder, and served from there."""
