"""Watches a script: attaches the trace once torch is imported, tells what it finds, writes it down."""

from __future__ import annotations

from anomprof.watching.watch import Watch, start

__all__ = ["Watch", "start"]
