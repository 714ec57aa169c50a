"""What limits the flows of a scenario, and which changes would help: each simulated."""

from bentpipe.advice.measured import Advice, FlowLimits, Measured, advise
from bentpipe.advice.remedies import Remedy, remedies

__all__ = ["Advice", "FlowLimits", "Measured", "Remedy", "advise", "remedies"]
