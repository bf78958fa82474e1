"""The notebook widget that evaluates one setting at a time.

In: a cluster, a failure model, a load. Out: an ipywidgets box, or a snapshot of it as HTML. Open
`explorer.py` first.
"""
