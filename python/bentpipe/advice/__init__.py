"""Finds what limits the flows of a scenario, and simulates the changes that may help."""

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
