"""The stand-in command provider: local commands, remote commands and copies over SSH."""
