"""Estimates as one HTML page with plots: a single file that needs no network."""

from __future__ import annotations

import importlib
from decimal import Decimal
from typing import Any

from hpc.catalog import Reliability
from hpc.cost.model import Estimate, Item, ScopeKind
from hpc.cost.render.markdown import remarks
from hpc.cost.render.text import ITEM_TITLES, money, percent, scope_title

#: Colours that stay apart for people with colour blindness (Okabe and Ito).
_RELIABILITY_COLOURS = {
    Reliability.LIVE: "#009E73",
    Reliability.QUOTED: "#56B4E9",
    Reliability.THIRD_PARTY: "#0072B2",
    Reliability.DERIVED: "#E69F00",
    Reliability.UNKNOWN: "#999999",
}
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")


def as_html(estimate: Estimate) -> str:
    """The estimate as a page. Plots are drawn by plotly.js, which is inside the page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("hpc.cost.render", "templates"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters.update(money=money, percent=percent)
    kinds = dict.fromkeys((line.kind, line.scope) for kind in ScopeKind for line in estimate.lines if line.kind is kind)
    return environment.get_template("price.html.j2").render(
        estimate=estimate,
        parts=[(scope_title(scope, kind), estimate.by_scope(scope, kind)) for kind, scope in kinds],
        items=[(ITEM_TITLES[item], estimate.by_item(item)) for item in Item],
        item_titles=ITEM_TITLES,
        scope_title=scope_title,
        remarks=remarks(estimate),
        plotly_js=importlib.import_module("plotly.offline").get_plotlyjs(),
        plots=[
            ("An hour, by part", _drawing(_hour_figure(estimate, kinds))),
            ("The expected month, by item and part", _drawing(_month_figure(estimate, kinds))),
            ("The expected month by way of paying", _drawing(_ways_figure(estimate))),
            ("What the prices rest on", _drawing(_reliability_figure(estimate))),
        ],
    )


def _drawing(figure: Any) -> str:
    """A figure as JSON that can stand inside a script element."""
    text: str = figure.to_json()
    return text.replace("</", "<\\/")


def _bar(**arguments: Any) -> Any:
    # Imported late and by name: plotly takes half a second to load, and it has no types.
    return importlib.import_module("plotly.graph_objects").Bar(**arguments)


def _number(value: Decimal | None) -> float:
    """For drawing only: the plots show amounts to the cent, the tables hold the exact ones."""
    return float(value or 0)


def _figure(traces: list[Any], unit: str, **layout: Any) -> Any:
    figure = importlib.import_module("plotly.graph_objects").Figure(traces)
    figure.update_layout(
        template="plotly_white",
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        height=340,
        legend={"orientation": "h", "y": -0.18, "traceorder": "normal"},
        font={"family": "system-ui, sans-serif", "size": 13},
        **layout,
    )
    figure.update_yaxes(title=unit, automargin=True)
    figure.update_xaxes(automargin=True)
    return figure


def _hour_figure(estimate: Estimate, kinds: dict[tuple[ScopeKind, str], None]) -> Any:
    traces = []
    for index, (kind, scope) in enumerate(kinds):
        amounts = estimate.by_scope(scope, kind)
        values = [_number(amounts.zero), _number(amounts.minimum), _number(amounts.worst)]
        if any(values):
            traces.append(
                _bar(
                    name=scope_title(scope, kind),
                    x=["all pools at zero", "pools at minimum", "worst case"],
                    y=values,
                    marker_color=_COLOURS[index % len(_COLOURS)],
                    hovertemplate="%{y:,.2f} CNY per hour",
                )
            )
    figure = _figure(traces, f"{estimate.currency} per hour", barmode="stack")
    for x, value in (
        ("all pools at zero", estimate.totals.zero),
        ("pools at minimum", estimate.totals.minimum),
        ("worst case", estimate.totals.worst),
    ):
        figure.add_annotation(x=x, y=_number(value), text=money(value), showarrow=False, yshift=10)
    return figure


def _month_figure(estimate: Estimate, kinds: dict[tuple[ScopeKind, str], None]) -> Any:
    shown = [item for item in Item if estimate.by_item(item).month]
    traces = []
    for index, (kind, scope) in enumerate(kinds):
        lines = [line for line in estimate.lines if (line.kind, line.scope) == (kind, scope)]
        values = [sum(_number(line.amounts.month) for line in lines if line.item is item) for item in shown]
        if any(values):
            traces.append(
                _bar(
                    name=scope_title(scope, kind),
                    x=[ITEM_TITLES[item] for item in shown],
                    y=values,
                    marker_color=_COLOURS[index % len(_COLOURS)],
                    hovertemplate="%{y:,.2f} CNY a month",
                )
            )
    return _figure(traces, f"{estimate.currency} per month", barmode="stack")


def _ways_figure(estimate: Estimate) -> Any:
    charges = tuple(dict.fromkeys(row.charge for row in estimate.alternatives))
    traces = []
    for index, charge in enumerate(charges):
        rows = [row for row in estimate.alternatives if row.charge == charge]
        traces.append(
            _bar(
                name="prepaid (all nodes, always on)" if charge == "prepaid" else charge,
                x=[f"pool {row.pool}" for row in rows],
                y=[_number(row.month) for row in rows],
                text=["" if row.month is None else f"{row.month:,.0f}" for row in rows],
                textposition="outside",
                textangle=0,
                textfont={"size": 11},
                constraintext="none",
                cliponaxis=False,
                marker_color=_COLOURS[index % len(_COLOURS)],
                hovertemplate="%{y:,.2f} CNY a month",
            )
        )
    return _figure(traces, f"{estimate.currency} per month", barmode="group")


def _reliability_figure(estimate: Estimate) -> Any:
    traces = []
    for kind, share in estimate.by_reliability().items():
        whole_hour, whole_month = _number(estimate.totals.worst), _number(estimate.totals.month)
        values = [
            100 * _number(share.worst) / whole_hour if whole_hour else 0,
            100 * _number(share.month) / whole_month if whole_month else 0,
        ]
        if any(values):
            traces.append(
                _bar(
                    name=str(kind),
                    x=["worst hour", "expected month"],
                    y=values,
                    marker_color=_RELIABILITY_COLOURS[kind],
                    hovertemplate="%{y:.1f} %",
                )
            )
    return _figure(traces, "share of the money, %", barmode="stack", yaxis_range=[0, 100])
