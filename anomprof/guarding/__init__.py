"""The guard: one look per step, and a replay of the step that went bad under the trace."""
