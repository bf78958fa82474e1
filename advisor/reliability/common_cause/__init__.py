"""Common-cause failure: how often any of many replica sets loses, given each set's losses.

In: a `Placement` of partitions and, for every rack pattern in it, the `SetLosses` of one set.
Out: `AnyLoss`, the first loss over all sets. Open `first_loss` first. The numbers flow so:

1. `placement.place` groups partitions by replicas; `replica_set_classes` groups sets by pattern.
2. `outage_class` splits a solved chain's loss rates by mechanism and by who else is out.
3. `common_events` counts once what sets share: events (`coincidence`), brokers struck by chance
   (`picked_brokers`) and brokers destroyed together (`destroyed_brokers`, `staggered_replacement`).
4. `first_loss.any_loss` combines the joint survival per event and site. `copysets` stands alone.
"""
