"""Renderers: JSON keeps its keys, tables and pages hold the numbers of the estimate."""

import json
import re
from importlib.resources import files
from io import StringIO

import jsonschema
import pytest
import yaml
from rich.console import Console
from round_prices import catalog, cluster

from hpc.catalog import Catalog
from hpc.cost import diff, estimate
from hpc.cost.render.html import as_html
from hpc.cost.render.json import as_json, diff_as_json
from hpc.cost.render.markdown import as_markdown, diff_as_markdown
from hpc.cost.render.table import diff_tables, price_tables
from hpc.cost.render.text import money, percent, signed
from hpc.paths import PROJECT_ROOT
from hpc.spec.cluster import ClusterSpec

SCHEMA = json.loads((files("hpc.cost.render") / "price.schema.json").read_text(encoding="utf-8"))

UNKNOWN = {"name": "q", "instance_types": ["ecs.c8i.2xlarge"], "max": 3}


def shipped(stack):
    text = (PROJECT_ROOT / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8")
    return estimate(ClusterSpec.model_validate(yaml.safe_load(text)["config"]["hpc:cluster"]), Catalog())


def small(**pool):
    spec = cluster({"charge": "spot", "min": 1, "max": 1234, **pool}, usage={"p": {"node_hours_per_month": 5000}})
    return estimate(spec, catalog())


def incomplete():
    return estimate(cluster({}, UNKNOWN, usage={"q": {"node_hours_per_month": 1}}), catalog())


def text_of(renderables) -> str:
    console = Console(file=StringIO(), width=200)
    for renderable in renderables:
        console.print(renderable)
    return console.file.getvalue()


@pytest.mark.parametrize("make", [small, incomplete, lambda: shipped("dev"), lambda: shipped("prod")])
def test_json_keeps_to_its_schema_and_loses_no_digit(make):
    got = make()
    document = json.loads(json.dumps(as_json(got)))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["hourly"]["worst"] == f"{got.totals.worst:f}"
    assert document["monthly"] == f"{got.totals.month:f}"
    assert len(document["lines"]) == len(got.lines)
    assert document["complete"] is got.complete


def test_json_of_the_unknown_is_null_and_named():
    document = as_json(incomplete())
    assert document["reliability"]["unknown"] == ["q: ecs.c8i.2xlarge"]
    line = next(line for line in document["lines"] if line["name"] == "ecs.c8i.2xlarge")
    assert line["worst"] is None and line["reliability"] == "unknown" and line["price"]["amount"] is None


def test_json_schema_refuses_numbers_as_money():
    document = as_json(small())
    document["hourly"]["worst"] = 1.5
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


def test_tables_hold_the_numbers():
    got = small()
    text = text_of(price_tables(got))
    for value in (got.totals.zero, got.totals.minimum, got.totals.worst, got.totals.month):
        assert money(value) in text
    assert "1,284.46" in text  # 1.1 + 1234 x 1.04
    assert "spot (chosen)" in text


def test_tables_say_what_is_unknown():
    text = text_of(price_tables(incomplete()))
    assert "known prices only" in text and "No price known: q ecs.c8i.2xlarge" in text


def test_markdown_holds_the_numbers_and_lines_up():
    got = small()
    text = as_markdown(got)
    assert f"**{money(got.totals.worst)}**" in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1


def test_the_page_holds_the_numbers_and_needs_no_network():
    got = shipped("prod")
    page = as_html(got)
    for value in (got.totals.zero, got.totals.worst, got.totals.month, got.saving.always_on_month):
        assert money(value) in page
    for pool in got.pools:
        assert f"pool {pool}" in page
    for line in got.lines:
        assert money(line.amounts.month) in page
    assert not re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)\s*=", page[:2000] + page[-200_000:])
    assert page.count("Plotly.newPlot(") >= 4
    # The plots hold the same figures as the tables.
    drawings = [
        json.loads(text.replace("<\\/", "</")) for text in re.findall(r"const drawing = (\{.*?\}); Plotly", page)
    ]
    assert len(drawings) == 4
    hour = drawings[0]
    assert hour["layout"]["annotations"][2]["text"] == money(got.totals.worst)
    names = [trace["name"] for trace in hour["data"]]
    assert {"pool mpi", "pool burst", "management", "login", "storage", "network"} == set(names)


def test_the_page_escapes_what_it_shows():
    got = small()
    hostile = type(got)(
        **{
            **{name: getattr(got, name) for name in got.__dataclass_fields__},
            "cluster": "</script><b>x",
            "notes": ("<i>",),
        }
    )
    page = as_html(hostile)
    assert "</script><b>x" not in page and "&lt;/script&gt;&lt;b&gt;x" in page
    assert "<i>" not in page[-5000:]


def test_a_difference_in_every_form():
    before, after = small(max=10), small(max=12, min=0)
    change = diff(before, after)
    document = diff_as_json(change)
    assert document["delta"]["worst"] == f"{after.totals.worst - before.totals.worst:f}"
    assert [row["item"] for row in document["changes"]] == ["compute", "system-disk"]
    text = text_of(diff_tables(change))
    assert "+2.08" in text and "-0.29" in text
    assert "+2.00" in diff_as_markdown(change)
    assert "No change." in diff_as_markdown(diff(before, before))


def test_a_pool_that_comes_or_goes():
    document = diff_as_json(diff(small(), incomplete()))
    gone = [row for row in document["changes"] if row["scope"] == "q"]
    assert gone[0]["before"] is None and gone[0]["after"]["worst"] is None and gone[0]["delta"]["worst"] is None


@pytest.mark.parametrize(
    ("value", "said"), [(None, "unknown"), ("0", "0.00"), ("0.0042", "0.0042"), ("1436.906", "1,436.91")]
)
def test_money_for_people(value, said):
    from decimal import Decimal

    assert money(None if value is None else Decimal(value)) == said


def test_signs_and_shares():
    from decimal import Decimal

    assert [signed(Decimal(v)) for v in ("0", "2", "-0.5")] == ["0", "+2.00", "-0.50"]
    assert (percent(Decimal("0.8214")), percent(None)) == ("82 %", "unknown")
