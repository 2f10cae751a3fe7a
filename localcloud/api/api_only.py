"""The backend that makes nothing: instances exist in the API alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from localcloud.contracts import Host, HostState, MetadataSource, Network


class ApiOnlyBackend:
    """Instances change state by the clock; there is nothing behind them."""

    real = False

    def adopt(
        self, hosts: Sequence[Host], source: MetadataSource, on_exit: Callable[[str], None]
    ) -> Mapping[str, HostState]:
        """Every instance is as the database says."""
        return {}

    def apply(self, network: Network) -> None:
        """No network to change."""

    def start(self, host: Host) -> None:
        """No host to boot."""

    def stop(self, instance_id: str, *, force: bool) -> None:
        """No host to stop."""

    def reboot(self, instance_id: str, *, force: bool) -> None:
        """No host to reboot."""

    def release(self, instance_id: str) -> None:
        """No host to remove."""

    def create_image(self, instance_id: str, image_id: str) -> None:
        """No disk to copy."""

    def delete_image(self, image_id: str) -> None:
        """No disk to remove."""

    def delete_file_system(self, file_system_id: str) -> None:
        """No directory to remove."""

    def console_output(self, instance_id: str) -> str:
        """Nothing was written."""
        return ""

    def close(self) -> None:
        """Nothing to close."""
