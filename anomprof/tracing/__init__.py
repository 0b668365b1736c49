"""The trace: watches every op and follows bad values back to the op that made them."""
