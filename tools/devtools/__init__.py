"""What tools/dev.py does, one module a command. Standard library only: it runs before anything is installed."""
