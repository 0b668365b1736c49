"""Runs a script in torch's anomaly mode: python with_anomaly.py SCRIPT."""

import torch
from watching import run_script

torch.autograd.set_detect_anomaly(True)
run_script()
