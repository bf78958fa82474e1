"""One partition under Kafka's rules, reduced to what decides its future; no time and no rates.

In: a quiescent partition, an event and the replicas that it strikes. Out: the next quiescent
partition and the effects of the transition (`effects`). Elections, ISR changes and acknowledgements
are those of `advisor.protocol.rules`. Open `reduced_state` first; `transition_table` memoises it,
`log_levels` ranks the logs, and `election_risk` says whether the next clean election can lose data.
"""
