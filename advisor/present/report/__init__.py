"""The report: one self-contained HTML file.

In: a `Recommendation`, and optionally an `Audit` and a sampled result. Out: a page without any
outside address. `page.py` fills `report.html.jinja`.
"""
