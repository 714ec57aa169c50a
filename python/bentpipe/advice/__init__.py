"""Finds what limits the flows of a scenario, and simulates remedies."""

from bentpipe.advice.advisor import Advice, FlowLimits, RemedyResult, advise
from bentpipe.advice.remedies import Remedy, remedies
from bentpipe.advice.user_experience import Experience, RemedyExperience

__all__ = [
    "Advice",
    "Experience",
    "FlowLimits",
    "Remedy",
    "RemedyExperience",
    "RemedyResult",
    "advise",
    "remedies",
]
