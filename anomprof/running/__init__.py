"""Runs a training script as plain Python would. Never imports torch.

Scripts set variables that torch reads when it is loaded, so nobody may load it before they do.
"""
