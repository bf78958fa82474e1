"""What a configuration loses and refuses: computed exactly, and sampled. A guide to the room.

- The question: `model`, `card`, `counts` (what fails), `workload`, `placement`.
- The partition with time taken out: `reduction`, `decisions`, `histories`; as a table `automaton`.
- The machines below it: `faults`, `rates`.
- All that can happen: `graph`, `happenings`, `early_cuts`, `returns`, `numbering`,
  `symmetry`.
- The part of it that matters, and what the rest could add: `selection`, `leftout`, `election_risk`,
  `limits`, `bounds`; as arrays `chain`.
- Its solution: `solve`, by `elimination`, `squaring` or `uniformisation` where paths are long;
  `staying`, `stalls`, `retention`, `solution`; for one set `measures`.
- All sets: `anyloss`, and what they have in common, `coincident_sets` and `together`; `copysets`.
- The answer: `evaluate`, `assumptions`, `result`, `ranges`, `tornado`, `cost`, `tolerances`,
  `internal_topics`, `empty_leader`, `wording`, `drawing`, `frames`.
- Other schemes: `quorums`, `scheme_chain`, `scheme_solution`, `schemes`.
- The sampler: `sampler`, `sampler_*`; its answer `sampled`, beside the exact one `crosscheck`.
"""
