"""The console page in a real browser: what a person sees, and what the forms do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from direct_cloud import IMAGE, TYPE

from localcloud.api import launch
from localcloud.api.client import LocalCloud
from localcloud.providers.client import Cloud

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright")

#: Names under which distributions install a browser that Playwright can drive.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

Page = Any


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser on PATH ({', '.join(BROWSERS)})")
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # the browser's own sandbox refuses root
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=sandbox)
        yield started
        started.close()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A cloud of its own: one test moves its clock."""
    state = tmp_path_factory.mktemp("console")
    yield launch.start(state, hosts=False)
    launch.stop(state)


@pytest.fixture
def page(browser: Any, cloud: LocalCloud) -> Iterator[Page]:
    opened = browser.new_page()
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.goto(cloud.console_url)
    yield opened
    opened.close()
    assert faults == []


@pytest.fixture
def instance(cloud: LocalCloud) -> str:
    """Id of a new spot instance of a pool."""
    api = Cloud(cloud.endpoint, "cn-hangzhou", cloud.record.access_key_id, cloud.record.access_key_secret)
    vpc = api.call("vpc", "CreateVpc", {"CidrBlock": "10.0.0.0/8"})["VpcId"]
    place = {"VpcId": vpc, "ZoneId": "cn-hangzhou-j", "CidrBlock": "10.0.0.0/16"}
    wanted = {
        "InstanceType": TYPE,
        "ImageId": IMAGE,
        "VSwitchId": api.call("vpc", "CreateVSwitch", place)["VSwitchId"],
        "SecurityGroupId": api.call("ecs", "CreateSecurityGroup", {"VpcId": vpc})["SecurityGroupId"],
        "SpotStrategy": "SpotAsPriceGo",
        "Tag": [{"Key": "hpc:pool", "Value": "mpi"}],
    }
    made: str = api.call("ecs", "RunInstances", wanted)["InstanceIdSets"]["InstanceIdSet"][0]
    return made


def test_an_empty_cloud_says_so(page: Page) -> None:
    page.get_by_text("nothing: the cloud is empty").wait_for()
    page.locator("#live", has_text="live").wait_for()
    assert page.title() == "Local Alibaba Cloud"
    assert page.inner_text("#count") == "0"


def test_an_instance_is_shown_with_pool_state_and_price(page: Page, instance: str) -> None:
    cells = page.locator("#instances tr", has_text=instance).locator("td")
    cells.first.wait_for()
    state, kind, zone, charge, price, pool = (cells.nth(number).inner_text() for number in range(2, 8))
    assert (kind, zone, charge, pool) == (TYPE, "cn-hangzhou-j", "spot", "mpi")
    assert state in ("Pending", "Starting", "Running")
    assert float(price) > 0
    assert float(page.inner_text("#hour")) > 0


def test_calls_appear_while_one_looks(page: Page, instance: str) -> None:
    page.locator("#log tr", has_text="RunInstances").first.wait_for()


def test_a_spot_instance_is_reclaimed_by_its_button(page: Page, instance: str) -> None:
    row = page.locator("#instances tr", has_text=instance)
    row.get_by_text("reclaim").click()
    row.get_by_text("notice").wait_for()


def test_stock_is_set_by_the_form(page: Page, cloud: LocalCloud) -> None:
    page.fill("#stock input[name=instance_type]", TYPE)
    page.fill("#stock input[name=count]", "3")
    page.click("#stock button")
    page.locator("#stocks li", has_text=f"{TYPE} in *, *: 3").wait_for()
    assert [(item["instance_type"], item["count"]) for item in cloud.knobs()["stock"]] == [(TYPE, 3)]


def test_a_quota_is_set_by_the_form(page: Page, cloud: LocalCloud) -> None:
    page.select_option("#quota select", "vcpus")
    page.fill("#quota input[name=value]", "64")
    page.click("#quota button")
    page.locator("#said", has_text="Quota vcpus: 64").wait_for()
    assert cloud.knobs()["quotas"]["vcpus"] == 64


def test_the_clock_is_moved_by_the_form(page: Page, cloud: LocalCloud) -> None:
    before = cloud.now()
    page.fill("#clock input[name=minutes]", "30")
    page.click("#clock button")
    page.locator("#now", has_text="(+30 min)").wait_for()
    assert cloud.now() >= before + 1800


def test_a_wrong_value_is_told_in_the_page(page: Page, cloud: LocalCloud) -> None:
    page.fill("#time input[name=value]", "1e12")
    page.click("#time button")
    page.locator("#said.error", has_text="describe_lag").wait_for()
    assert cloud.knobs()["describe_lag"] == 0


def test_the_page_needs_its_token(browser: Any, cloud: LocalCloud) -> None:
    opened = browser.new_context().new_page()
    assert opened.goto(cloud.record.url + "/").status in (401, 403)
    opened.close()
