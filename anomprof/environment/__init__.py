"""Where it was measured: the machine, its limits and switches. Only ``facts`` and what it asks need torch."""
