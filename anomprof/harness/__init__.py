"""Runs modes over steps: plan -> bench -> evidence -> rounds of turns -> record."""
