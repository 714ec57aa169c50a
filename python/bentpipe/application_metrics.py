"""Application metrics of a summary: distributions of times, each under one name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

# Mean opinion scores, the higher the better: the summary's names for them and for their calls.
_OPINION_SCORES: Final = {
    "MOS": ("call_mos", "calls_begun"),
    "video MOS": ("video_call_mos", "video_calls_begun"),
}
OPINION_SCORES: Final = frozenset(_OPINION_SCORES)


def times_of(
    told: Mapping[str, Any],
) -> Iterator[tuple[str, tuple[int, int], Mapping[str, Any]]]:
    """Yield the distributions of times: name, (completed, started), quantiles."""
    if (loads := told.get("page_load_ms")) is not None:
        begun = told.get("navigations", 0)
        loaded = told.get("pages_loaded", len(told.get("pages") or ()))
        yield "page load", (loaded, begun), loads
        yield "first byte", (loaded, begun), told["first_byte_ms"]
    if (responses := told.get("responses")) is not None:
        yield "response", (responses["count"], responses["requests"]), responses["time_ms"]
    for key, what in (("files", "file"), ("mails", "mail")):
        if (transfers := told.get(key)) is not None:
            yield what, (transfers["count"], transfers["begun"]), transfers["time_ms"]
    if (echoes := told.get("echoes")) is not None:
        yield "echo", (echoes["count"], echoes["requests"]), echoes["time_ms"]
    if (messages := told.get("messages")) is not None:
        yield "packet delay", (messages["received"], messages["sent"]), messages["delay_ms"]
    if (delays := told.get("mouth_to_ear_ms")) is not None:
        calls = told.get("calls_begun", 0)
        yield "mouth to ear", (calls, calls), delays
    if (delays := told.get("video_call_delay_ms")) is not None:
        calls = told.get("video_calls_begun", 0)
        yield "capture to display", (calls, calls), delays
    if (video := told.get("video")) is not None:
        started = video.get("started", 1)
        yield "start-up", (started, started), video["start_up_ms"]


def opinion_scores_of(
    told: Mapping[str, Any],
) -> Iterator[tuple[str, tuple[int, int], Mapping[str, Any]]]:
    """Yield the distributions of mean opinion scores, as `times_of` yields times."""
    for what, (key, begun) in _OPINION_SCORES.items():
        if (scores := told.get(key)) is not None:
            calls = told.get(begun, 0)
            yield what, (calls, calls), scores
