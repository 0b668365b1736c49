"""Runs a script with transformers' DebugUnderflowOverflow on each of its models.

python with_transformers.py SCRIPT
"""

from transformers.debug_utils import DebugUnderflowOverflow
from watching import run_script, watch_models

watch_models(DebugUnderflowOverflow)
run_script()
