"""Closed-form predictions for a scenario: which models apply, and what each gives."""

from bentpipe.prediction.models import FlowPrediction, ModelAnswer, Prediction, predict

__all__ = ["FlowPrediction", "ModelAnswer", "Prediction", "predict"]
