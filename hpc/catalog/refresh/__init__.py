"""Reading types, eRDMA capability, stock and prices of an account from the cloud into an override file."""

from hpc.catalog.refresh.clients import Clients, connect
from hpc.catalog.refresh.run import default_file, refresh, refresh_to_file

__all__ = ["Clients", "connect", "default_file", "refresh", "refresh_to_file"]
