"""Where the cloud's resources are kept."""

from localcloud.api.store.database import Doc, Page, Store

__all__ = ["Doc", "Page", "Store"]
