"""Watches a script: attaches the trace when torch is imported, says what it finds, writes it down as it goes."""

from __future__ import annotations

from anomprof.watching.watch import Watch, start

__all__ = ["Watch", "start"]
