"""Measures of one replica set, from its CTMC and a case's numbers.

In: the rack numbers of the replicas, `ChainParameters`, producer timeouts and ISR stalls. Out:
`SetMeasures`: loss rates, records lost and refused, unavailability and stalls, each split by
mechanism and with an error bound. Open `replica_set` first; `solved_chain` computes the measures,
`first_losses` the first loss of any set of a case.
"""
