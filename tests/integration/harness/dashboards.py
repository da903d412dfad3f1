"""The queries of deploy/grafana, with their variables filled in as Grafana does."""
import json
import math
import pathlib

from .wait import eventually

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "deploy/grafana"
ALWAYS = {"$job": ".*", "$rule": ".*", "$alerts": 'scale="true"', "$__rate_interval": "1m", "$__range": "1m"}


def read_queries(name, target="", rows=None):
    """{place: expression} of a dashboard: of its panels (in these rows only, or in all), and of its annotations."""
    dashboard = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    found, row = {}, ""
    for panel in dashboard["panels"]:
        row = panel["title"] if panel["type"] == "row" else row
        if rows is None or rows(row):
            found.update({f"{panel['title']} {query['refId']}": query["expr"] for query in panel.get("targets", [])})
    if rows is None or rows("annotations"):
        found.update({f"annotation {item['name']}": item["expr"] for item in dashboard["annotations"]["list"]})
    for variable, value in {**ALWAYS, "$target": target}.items():
        found = {place: expr.replace(variable, value) for place, expr in found.items()}
    assert not [expr for expr in found.values() if "$" in expr], found
    return found


def find_empty(prometheus, queries):
    """The places whose query has no finite value."""
    return [place for place, expr in queries.items()
            if not any(math.isfinite(float(row["value"][1])) for row in prometheus.query(expr))]


def wait_for_data(prometheus, queries):
    """Until all queries have data at once. A change of a size is an annotation for as long as the window."""
    empty = list(queries)

    def is_full():
        empty[:] = find_empty(prometheus, queries)
        assert not empty, f"no data: {empty}"
        return True

    eventually(is_full, 60, what="each query has data")
