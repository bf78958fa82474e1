"""What `evaluate` and `simulate` return, and what can be said about it: see `reliability.py`."""
