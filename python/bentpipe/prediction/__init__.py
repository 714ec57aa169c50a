"""Closed-form predictions for a scenario: which models apply, and what each gives."""

from bentpipe.prediction.flows import predict
from bentpipe.prediction.predictions import FlowPrediction, ModelAnswer, Prediction

__all__ = ["FlowPrediction", "ModelAnswer", "Prediction", "predict"]
