"""What limits the flows of a scenario, and which changes would help: each simulated."""

from bentpipe.advice.felt import Experience, FeltRemedy
from bentpipe.advice.measured import Advice, FlowLimits, Measured, advise
from bentpipe.advice.remedies import Remedy, remedies

__all__ = [
    "Advice",
    "Experience",
    "FeltRemedy",
    "FlowLimits",
    "Measured",
    "Remedy",
    "advise",
    "remedies",
]
