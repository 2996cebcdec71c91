"""From the scores of tasks to the leaderboard's numbers: core, open, overall, and a mean for every keyword."""
