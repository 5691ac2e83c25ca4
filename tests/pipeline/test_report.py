"""Two reports over the same data are the same to the byte, their provenance apart."""

from pipeline_lib.base.files import read_json, write_json

from .workspace import Workspace

LATER = """
from datetime import datetime, timedelta
from pipeline_lib.report import provenance
class Later(datetime):
    @classmethod
    def now(cls, zone=None):
        return datetime.now(zone) + timedelta(days=400)
provenance.datetime = Later
provenance.cpu_name = lambda: "another processor"
"""


def test_two_reports_differ_in_their_provenance_alone(workspace: Workspace) -> None:
    before, files = workspace.report(), workspace.digests("data/report")
    for path in (workspace / "data/stages").glob("*.json"):
        record = read_json(path)
        counts = {kind: {"computed": 0, "reused": 7} for kind in record["counts"]}
        taken = {"seconds": record["seconds"] + 100, "peak_bytes": 1, "processor": "other"}
        write_json(path, record | taken | {"started": "2020-01-01T00:00:00", "counts": counts})
    workspace.stage("report", prelude=LATER).sound()
    after = workspace.report()
    assert after[:2] == before[:2]
    changed = {key for key in after[2] if after[2][key] != before[2][key]}
    assert changed == {"made", "processor", "flow", "account"}
    others = workspace.digests("data/report")
    assert {name for name in files if others[name] != files[name]} == {"index.html", "report.json"}
