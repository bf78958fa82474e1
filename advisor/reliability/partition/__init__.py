"""One partition under Kafka's rules, reduced to what decides its future; no time and no rates.

Open `reduced_state` first. Elections and ISR changes are those of `advisor.protocol.rules`.
"""
