"""Common-cause failure: how often any of many replica sets loses, given each set's losses.

Open `first_loss` first. `placement` groups partitions and sets, `outage_class` splits the losses of
one set by who else is out, `common_events` counts once what several lose in. `copysets` stands
alone.
"""
