"""Look-ups over the shipped data: every row has a source, capabilities are the documented ones."""

import re
import subprocess
import sys

import pytest

from hpc.catalog import Capability, Catalog, Reliability
from hpc.spec.image import OperatingSystem

CATALOG = Catalog()


@pytest.mark.parametrize("kind", CATALOG.instance_types(), ids=lambda kind: kind.name)
def test_every_type_is_consistent(kind):
    assert re.fullmatch(r"ecs\.[a-z0-9-]+\.[a-z0-9]+", kind.name)
    assert kind.name.startswith(kind.family + ".")
    assert kind.vcpus == kind.physical_cores * kind.threads_per_core
    assert kind.memory_gib > 0
    assert kind.source and kind.as_of
    family = CATALOG.family(kind.family)
    assert family is not None and family.architecture == kind.architecture
    if kind.eri_quantity is not None:
        assert (kind.eri_quantity > 0) == (kind.erdma is Capability.YES)
    if kind.erdma_gbps:
        assert kind.erdma is Capability.YES


def test_every_row_of_the_other_tables_has_a_source():
    for row in (*CATALOG.families(), *CATALOG.regions(), *CATALOG.images()):
        assert row.source and row.as_of, row


@pytest.mark.parametrize(
    ("name", "erdma"),
    [
        ("ecs.hpc8ae.32xlarge", "yes"),
        ("ecs.c8ae.32xlarge", "yes"),
        ("ecs.c8i.large", "yes"),
        ("ecs.c7re.4xlarge", "yes"),
        ("ecs.c9a.xlarge", "yes"),
        ("ecs.c9a.large", "no"),  # eRDMA of the generation 9 AMD families begins at 4 vCPU
        ("ecs.c7.2xlarge", "no"),
        ("ecs.hfc7.24xlarge", "no"),
        ("ecs.hpc7ip.32xlarge", "no"),
        ("ecs.g8i.2xlarge", "likely"),
        ("ecs.hfr8i.2xlarge", "unknown"),
    ],
)
def test_erdma_capability(name, erdma):
    assert CATALOG.instance_type(name).erdma == erdma


def test_likely_and_yes_are_worth_trying():
    assert [capability.usable for capability in Capability] == [True, True, False, False]


def test_hpc_families_sell_physical_cores():
    kind = CATALOG.instance_type("ecs.hpc8ae.32xlarge")
    assert (kind.vcpus, kind.physical_cores, kind.threads_per_core, kind.memory_gib) == (64, 64, 1, 256)
    assert kind.erdma_gbps == 64 and kind.supported_os == ("alinux-3", "rocky-9")
    assert CATALOG.instance_type("ecs.hpc8i.32xlarge").invite_only


def test_a_quoted_size_is_not_bent_to_the_rule():
    quoted = CATALOG.instance_type("ecs.c8i.48xlarge")
    assert (quoted.memory_gib, quoted.reliability) == (512, Reliability.QUOTED)
    derived = CATALOG.instance_type("ecs.g8i.2xlarge")
    assert (derived.vcpus, derived.memory_gib, derived.reliability) == (8, 32, Reliability.DERIVED)


def test_threads_per_core_follow_the_family():
    for name, cores in (("ecs.c8ae.4xlarge", 8), ("ecs.c9ae.4xlarge", 16), ("ecs.c8y.4xlarge", 16)):
        assert CATALOG.instance_type(name).physical_cores == cores


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("ecs.c7.2xlarge", "ecs.c8i.2xlarge"),
        ("ecs.hfc7.24xlarge", "ecs.c8i.24xlarge"),
        ("ecs.c8ae.4xlarge", "ecs.c8ae.4xlarge"),
        ("ecs.c9a.large", "ecs.c8a.large"),
        ("ecs.g8y.xlarge", "ecs.c8y.xlarge"),  # stays on Arm
        ("ecs.c7.64xlarge", "ecs.c8i.48xlarge"),  # a size that is not listed is placed by its name
        ("ecs.hfr7.2xlarge", "ecs.r9a.2xlarge"),
    ],
)
def test_nearest_type_with_erdma(name, nearest):
    assert CATALOG.nearest_erdma(name).name == nearest


@pytest.mark.parametrize("name", ["ecs.bogus.large", "ecs.c7", "", "ecs.c7.hugexlarge", "ecs.ebmg5.24xlarge"])
def test_what_cannot_be_placed_has_no_nearest_type(name):
    assert CATALOG.nearest_erdma(name) is None


def test_nearest_is_always_buyable_and_of_the_same_architecture():
    for kind in CATALOG.instance_types():
        nearest = CATALOG.nearest_erdma(kind.name)
        assert nearest.erdma is Capability.YES
        assert nearest.architecture == kind.architecture
        assert not nearest.invite_only


def test_zones_belong_to_their_region():
    for region in CATALOG.regions():
        assert region.zones and all(zone.startswith(region.id) for zone in region.zones)
    assert {"cn-hangzhou-j", "cn-hangzhou-k"} <= set(CATALOG.region("cn-hangzhou").zones)
    assert CATALOG.region("cn-nowhere") is None


def test_there_is_an_image_of_every_distribution_for_both_architectures():
    for os in OperatingSystem:
        for architecture in ("x86_64", "arm64"):
            image = CATALOG.image(os, architecture)
            assert re.match(image.name_regex, image.image_id), image
            assert image.package_family == ("dnf" if os.startswith(("alinux", "rocky")) else "apt")
    assert CATALOG.image("windows", "x86_64") is None


def test_erdma_driver_support_is_the_documented_one():
    with_driver = {image.os for image in CATALOG.images() if image.erdma_driver}
    assert with_driver == {"alinux-3", "ubuntu-22.04", "ubuntu-24.04"}


def test_looking_things_up_loads_no_sdk_and_no_pulumi():
    program = (
        "import sys; from hpc.catalog import load_catalog; load_catalog().nearest_erdma('ecs.c7.large');"
        "load_catalog().price('ecs.c7.large', 'cn-hangzhou', 'payg');"
        "print([m for m in ('pulumi', 'alibabacloud_ecs20140526', 'Tea', 'pandas', 'plotly', 'requests')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
