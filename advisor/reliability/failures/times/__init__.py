"""Times of a card beyond means: their distributions, and how many repairs progress at once."""
