"""Which release of Slurm each distribution brings, and from when on slurm.conf knows a parameter."""

from __future__ import annotations

from hpc.spec.image import OperatingSystem

#: Release as (year, month), as Slurm numbers them.
Release = tuple[int, int]

#: Oldest release that this project works with: the first that hands ResumeProgram the file SLURM_RESUME_FILE, which
#: says which job wants which nodes (slurm.conf(5) of 22.05).
OLDEST: Release = (22, 5)

#: Release in the repositories that the bootstrap scripts use. Debian 12 and Ubuntu 24.04: packages.debian.org and
#: packages.ubuntu.com; Rocky 9: EPEL 9. EPEL 8, which fits Alibaba Cloud Linux 3, has 20.11, which is too old: there
#: the packages come from OpenHPC 2, whose updates have 23.11.4 (components/rms/slurm in branch 2.x of
#: github.com/openhpc/ohpc); a mirror of it may be older, so slurm.conf asks for no more than the oldest. Ubuntu 22.04
#: has 21.08, which is refused (docs/slurm.md).
RELEASES: dict[OperatingSystem, Release] = {
    OperatingSystem.DEBIAN_12: (22, 5),
    OperatingSystem.ROCKY_9: (22, 5),
    OperatingSystem.UBUNTU_24_04: (23, 11),
    OperatingSystem.UBUNTU_22_04: OLDEST,
    OperatingSystem.ALINUX_3: OLDEST,
}
