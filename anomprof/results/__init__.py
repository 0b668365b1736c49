"""What a bench record says: per mode the slowdown, memory, energy and proof. No torch.

A record holds raw values only; everything here is derived from it: ``pairs`` of turns become
``mode_result`` rows and the ``anomaly_cost``; ``content`` is what goes into ``results.json``.
"""

from anomprof.results.anomaly_cost import AnomalyCost
from anomprof.results.content import to_json
from anomprof.results.derivation import Results, derive
from anomprof.results.mode_result import ModeResult
from anomprof.results.pairs import BASELINE, is_complete, live_slowdowns, pair_up, turn_seconds

__all__ = [
    "BASELINE",
    "AnomalyCost",
    "ModeResult",
    "Results",
    "derive",
    "is_complete",
    "live_slowdowns",
    "pair_up",
    "to_json",
    "turn_seconds",
]
