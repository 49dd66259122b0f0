"""The command line: one file per noun. Nothing heavy is imported before a command needs it."""
