"""Closed-form predictions for a scenario: which models apply, and what each gives."""

from bentpipe.prediction.answers import FlowPrediction, ModelAnswer, Prediction
from bentpipe.prediction.flows import predict

__all__ = ["FlowPrediction", "ModelAnswer", "Prediction", "predict"]
