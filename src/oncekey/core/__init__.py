"""The pure centre: values, decisions and the ledger. Standard library only; read this first."""
