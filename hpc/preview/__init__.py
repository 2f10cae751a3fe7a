"""What a preview says and whether it may go on: the report, its verdict, and the forms in which it is written. Pure."""

from hpc.preview.gate import report
from hpc.preview.model import Base, Report, Verdict
from hpc.preview.render import Format, render, write_reports

__all__ = ["Base", "Format", "Report", "Verdict", "render", "report", "write_reports"]
