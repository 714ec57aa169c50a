"""Figures show what was measured: rates in bins, the longest queue, every flow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine, LayoutEngine
from matplotlib.patches import StepPatch

import bentpipe
from bentpipe import cli
from bentpipe.plot.advice_plot import _draw as draw_advice
from bentpipe.plot.application_plots import _draw as draw_times
from bentpipe.plot.application_plots import _draw_received as draw_received
from bentpipe.plot.binned import bin_edges, extreme_and_mean, mean_rate, round_trip_edges
from bentpipe.plot.curves import Curve, Curves
from bentpipe.plot.overview import draw_overview, overview_figure
from bentpipe.plot.run_plots import MOST_SUBJECTS, write_run_plots
from bentpipe.plot.run_plots import _draw as draw_run
from bentpipe.plot.run_plots import _draw_gateway as draw_gateway
from bentpipe.plot.run_plots import _draw_queue as draw_queue
from bentpipe.plot.run_plots import _draw_round_trips as draw_round_trips
from bentpipe.plot.run_plots import _most_telling as most_telling
from bentpipe.plot.style import (
    _STYLE,
    legend_below,
    log_x_in_seconds,
    new_axes,
    new_figure,
    save_svg,
)
from bentpipe.plot.sweep_plot import _draw as draw_sweep
from bentpipe.probe_file import FiledSeries
from bentpipe.results import RunResult
from bentpipe.series import Series

CROWD: dict[str, Any] = {
    "name": "crowd",
    "duration": "20 s",
    "hosts": {"server": {}, "client": {"count": 12}},
    "gateways.hub.kind": "router",
    "links.satellite": {
        "between": ["server", "hub"],
        "rate": "5 Mbit/s",
        "delay": "250 ms",
        "forward": {"queue": {"kind": "drop-tail", "limit": "40 packets"}},
    },
    "links.access": {"between": ["hub", "client"], "rate": "5 Mbit/s", "delay": "2 ms"},
    "flows.download": {"from": "server", "to": "client", "app": {"kind": "bulk", "size": "300 kB"}},
}
WINDOW: dict[str, Any] = {
    "name": "window",
    "duration": "60 s",
    "hosts": {"server": {}, "client": {"tcp.receive_buffer": "32 KiB"}},
    "links.satellite": {"between": ["server", "client"], "rate": "4 Mbit/s", "delay": "270 ms"},
    "flows.update": {"from": "server", "to": "client", "app": {"kind": "bulk", "size": "2 MB"}},
}


def ran(scenario: dict[str, Any], **settings: object) -> RunResult:
    return bentpipe.run(scenario, settings=settings, default_probes=True)


def overview(result: RunResult) -> list[Axes]:
    figure = Figure()
    draw_overview(figure, result.series, result.summary)
    return figure.axes


def labels(axes: Axes) -> list[str]:
    return [str(label) for label in axes.get_legend_handles_labels()[1]]


def steps(axes: Axes) -> Iterator[Any]:
    return (patch.get_data() for patch in axes.patches if isinstance(patch, StepPatch))


def split_series(times_s: Any, values: Any, places: Iterable[int]) -> list[Series]:
    """Cut a series into parts, as a file has it in row groups."""
    ends = sorted({0, len(values), *(place % len(values) for place in places)})
    return [
        Series(times_s=times_s[begin:end], values=values[begin:end], unit="")
        for begin, end in pairwise(ends)
    ]


PLACES = st.lists(st.integers(0, 60), max_size=5)


@given(
    npst.arrays(np.float64, st.integers(1, 60), elements=st.floats(0.0, 1e9)),
    st.integers(1, 50),
    PLACES,
)
def test_binned_rates_preserve_delivered_bytes(rates: Any, count: int, places: list[int]) -> None:
    times: Any = 0.1 * np.arange(1.0, len(rates) + 1.0, dtype=np.float64)
    edges = bin_edges(float(times[-1]), count=count)
    means = mean_rate(split_series(times, rates, places), edges)
    assert means == pytest.approx(mean_rate(split_series(times, rates, []), edges), abs=1e-3)
    assert (means * np.diff(edges)).sum() == pytest.approx(0.1 * rates.sum(), rel=1e-9, abs=1e-3)
    assert means.max() <= rates.max() * (1 + 1e-9) + 1e-3


@given(
    npst.arrays(np.float64, st.integers(1, 60), elements=st.floats(0.0, 1e6)),
    st.integers(1, 80),
    PLACES,
)
def test_bins_keep_the_maximum_and_the_mean(values: Any, count: int, places: list[int]) -> None:
    times: Any = 0.25 * np.arange(1.0, len(values) + 1.0, dtype=np.float64)
    edges = bin_edges(float(times[-1]), count=count)
    highest, means = extreme_and_mean(split_series(times, values, places), edges)
    in_one = extreme_and_mean(split_series(times, values, []), edges)
    assert np.array_equal(highest, in_one[0])
    assert means == pytest.approx(in_one[1], abs=1e-6)
    assert highest.max() == values.max()
    assert (means <= highest + 1e-9 * values.max()).all()


@given(st.floats(0.01, 1e5), st.floats(0.0, 10.0), st.floats(1e-6, 10.0), st.floats(0.0, 2e5))
def test_bins_are_whole_round_trips(
    end_s: float, round_trip_s: float, interval_s: float, begin_s: float
) -> None:
    edges = round_trip_edges(end_s, round_trip_s=round_trip_s, interval_s=interval_s)
    assert (edges[0], edges[-1]) == (0.0, end_s)
    assert (np.diff(edges) > 0).all()
    # And of what is shown from later on (by more than floats tell apart); not from the end on.
    assume(begin_s < (1.0 - 1e-9) * end_s or begin_s >= end_s)
    later = round_trip_edges(
        end_s, round_trip_s=round_trip_s, interval_s=interval_s, begin_s=begin_s
    )
    assert (later[0], later[-1]) == (begin_s if begin_s < end_s else 0.0, end_s)
    assert (np.diff(later) > 0).all()
    assert (np.diff(bin_edges(end_s, begin_s=begin_s)) > 0).all()
    assert 2 <= len(edges) <= 123


def test_long_round_trips_still_give_several_bins() -> None:
    """As behind a modem's full queue: 24 s to and fro in a run of 60 s were two bins."""
    edges = round_trip_edges(60.0, round_trip_s=24.0, interval_s=0.1)
    assert len(edges) - 1 == pytest.approx(20, abs=1)
    # A series with few samples has no more bins than samples.
    assert len(round_trip_edges(60.0, round_trip_s=24.0, interval_s=10.0)) - 1 == 6


def test_window_limited_goodput_is_averaged_over_round_trips() -> None:
    """The window arrives in bursts; within a round trip that is no news of the goodput."""
    result = ran(WINDOW)
    axes, *_ = overview(result)
    (values, edges, _) = next(steps(axes))
    middle = values[len(values) // 4 : 3 * len(values) // 4]
    assert edges[1] > 0.54
    assert middle.std() < 0.2 * middle.mean()
    # The samples themselves swing between nothing and the link's rate.
    samples = result.series["update.goodput"].values
    assert samples.std() > 0.5 * samples.mean()


def test_longest_drawn_queue_equals_the_summarys() -> None:
    result = ran(CROWD)
    drawn = {
        label: float(data.values.max())
        for axes in overview(result)
        for label, data in zip(labels(axes), steps(axes), strict=False)
    }
    counted = {link.name: link.queue_max_packets for link in result.summary.links}
    assert drawn["satellite.forward"] == counted["satellite.forward"] > 5


def test_overview_has_every_flow_and_no_empty_panel() -> None:
    result = ran(CROWD)
    goodput, queues, losses = overview(result)
    assert labels(goodput) == ["download, 12 together"]
    total = next(steps(goodput))
    delivered = (total.values * np.diff(total.edges)).sum() / 8
    scale = 1e6 if "Mbit" in goodput.get_ylabel() else 1e3
    assert delivered * scale == pytest.approx(12 * 300_000, rel=0.01)
    dropped = sum(link.packets_dropped for link in result.summary.links)
    assert dropped > 0
    assert any(f"({dropped:,})" in label for label in labels(losses))
    assert labels(queues)
    # Nothing is lost: no row for it. No queue: none for that.
    quiet = ran(WINDOW)
    assert [axes.get_ylabel().split()[0] for axes in overview(quiet)] == ["goodput", "longest"]


def test_losses_of_many_links_are_one_labelled_line() -> None:
    many = {
        "name": "many",
        "duration": "20 s",
        "hosts": {"shore": {}, "ship": {"count": 30}},
        "gateways": {"hub": {}},
        "links": {
            "lan": {"between": ["shore", "hub"], "rate": "1 Gbit/s", "delay": "5 ms"},
            "satellite": {
                "between": ["hub", "ship"],
                "rate": "1 Mbit/s",
                "delay": "270 ms",
                "errors": {"packet_loss_rate": 0.02},
            },
        },
        "flows": {
            "update": {"from": "shore", "to": "ship", "app": {"kind": "bulk", "size": "100 kB"}}
        },
    }
    result = ran(many)
    drawn = [line for line in labels(overview(result)[-1]) if line.startswith("satellite.forward")]
    forward = [link for link in result.summary.links if link.name.endswith(".forward")][1:]
    recorded = [link for link in forward if f"{link.name}.lost" in result.series]
    assert 0 < len(recorded) < 30
    lost = [sum(link.packets_lost for link in links) for links in (recorded, forward)]
    assert lost[0] > 0
    expected = f"satellite.forward, {len(recorded)} of 30: lost to errors ({lost[0]} of {lost[1]})"
    assert drawn == [expected]
    (line,) = [each for each in overview(result)[-1].lines if each.get_label() == expected]
    assert np.asarray(line.get_ydata())[-1] == lost[0]
    assert "in order" in overview(result)[0].texts[0].get_text()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ({"outages": [{"at": "5 s", "lasts": "2 s"}]}, r"lost to outages \(\d+\)"),
        (
            {
                "outages": [{"at": "5 s", "lasts": "2 s"}],
                "errors": {"packet_loss_rate": 0.01},
                "schedule": [
                    {"at": "8 s", "packet_loss_rate": 0.9},
                    {"at": "9 s", "packet_loss_rate": 0.0},
                ],
            },
            None,
        ),
    ],
)
def test_losses_panel_names_the_causes(path: dict[str, Any], said: str | None) -> None:
    link = {"between": ["server", "client"], "rate": "2 Mbit/s", "delay": "50 ms", **path}
    result = ran(
        {
            "name": "gone",
            "duration": "20 s",
            "hosts": {"server": {}, "client": {}},
            "links": {"radio": link},
            "flows": {"source": {"from": "server", "to": "client", "app": SOURCE}},
        }
    )
    forward = result.summary.links[0]
    (drawn,) = [line for line in labels(overview(result)[-1]) if line.startswith("radio.forward")]
    if said is not None:
        assert re.fullmatch(f"radio.forward: {said}", drawn)
        return
    to = {cause: forward.count(f"lost_to_{cause}") for cause in ("outages", "changes")}
    errors = forward.packets_lost - sum(to.values())
    assert min(*to.values(), errors) > 0
    assert f"outages ({to['outages']})" in drawn
    assert f"changes of the path ({to['changes']})" in drawn
    assert f"errors ({errors})" in drawn
    assert drawn.endswith(f" ({forward.packets_lost})")
    # All of it is beside the axes, in lines that leave them some width.
    legend = overview(result)[-1].get_legend()
    assert legend is not None
    shown = [text.get_text() for text in legend.get_texts()]
    assert drawn in [text.replace("\n", " ") for text in shown]
    assert max(len(line) for text in shown for line in text.split("\n")) <= 48


SOURCE = {"kind": "packets", "size": "500 B", "interval": "10 ms"}


def test_few_flows_are_drawn_as_separate_lines() -> None:
    few = {**CROWD, "hosts": {"server": {}, "client": {"count": 5}}}
    assert labels(overview(ran(few))[0]) == [f"download-{n}" for n in range(1, 6)]


def test_plots_from_a_file_read_row_group_by_row_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour at every change is tens of millions of samples: row group by row group."""
    every = {"probes.interval": "every-change"}
    kept = bentpipe.run(CROWD, settings=every, default_probes=True)
    filed = bentpipe.run(
        CROWD, settings=every, default_probes=True, probes_to=tmp_path / "probes.parquet"
    )
    (tmp_path / "kept").mkdir()
    names = [file.name for file in write_run_plots(kept, tmp_path / "kept")[0]]

    def whole(_: object, name: str) -> NoReturn:
        raise AssertionError(f"{name} was read at once")

    monkeypatch.setattr(FiledSeries, "__getitem__", whole)
    files, _ = write_run_plots(filed, tmp_path)
    assert [file.name for file in files] == names
    assert {"overview.svg", "satellite.forward.queue.svg"} <= set(names)


def test_idle_queues_are_not_plotted(tmp_path: Path) -> None:
    files, left_out = write_run_plots(ran(WINDOW), tmp_path)
    assert left_out == 0
    names = {file.name for file in files}
    assert "overview.svg" in names
    assert "satellite.return.queue.svg" not in names


def test_legends_are_placed_beside_the_axes() -> None:
    figure = Figure(figsize=(9, 7), layout="constrained")
    result = ran(CROWD)
    draw_overview(figure, result.series, result.summary)
    figure.draw_without_rendering()
    for axes in figure.axes:
        legend = axes.get_legend()
        assert legend is not None
        assert legend.get_window_extent().x0 >= axes.get_window_extent().x1


def test_command_reports_omitted_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "crowd.toml"
    scenario.write_text(bentpipe.Scenario.of(CROWD).text or "", encoding="utf-8")
    assert cli.execute(["run", str(scenario), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert "overview.svg" in said.out
    assert "no plots of their own" in said.err


def test_logarithmic_axis_shows_zero() -> None:
    points = tuple((x, 1e6, 2e6, 3e6) for x in (0.0, 1e-7, 1e-6, 1e-5))
    curves = Curves(
        title="errors",
        x_label="bit error rate",
        log_x=True,
        ticks=None,
        legend="rule",
        curves=(Curve(label="reno", points=points), Curve(label="hybla", points=points)),
    )
    figure = Figure()
    draw_sweep(figure, panels=[curves])
    (axes,) = figure.axes
    places = axes.transData.transform([(x, 0.0) for x, *_ in points])[:, 0]
    gaps = np.diff(places)
    # No two values lie on each other.
    assert gaps.min() > 0.2 * gaps.max()
    assert 0.0 in axes.get_xticks()


def test_step_lines_do_not_drop_to_zero_at_the_end() -> None:
    """A line down to zero at the end of the run says that nothing was sent there."""
    drawn = [
        patch
        for axes in overview(ran(WINDOW))
        for patch in axes.patches
        if isinstance(patch, StepPatch)
    ]
    assert drawn
    for patch in drawn:
        _, _, baseline = patch.get_data()
        assert baseline is None


def test_gateway_buffer_plot_is_not_scaled_to_unbounded_windows(tmp_path: Path) -> None:
    result = bentpipe.run("geo-split", settings={"duration": "4 s"})
    files, _ = write_run_plots(result, tmp_path)
    assert tmp_path / "hub.gateway.svg" in files
    # Hybla's window has gigabytes for a second; what is held is what is to be seen.
    assert result.series["hub.facing_window"].values.max() > 1e9
    gauges = {
        name.removeprefix("hub."): series
        for name, series in result.series.items()
        if name.startswith("hub.")
    }
    (axes,) = Figure().subplots(1, 1, squeeze=False).flat
    draw_gateway(axes, gauges)
    held = max(gauges[each].values.max() for each in ("buffered", "host_offered"))
    assert axes.get_ylabel() == "all connections together (kB)"
    assert axes.get_ylim()[1] * 1e3 < 2.5 * held


def test_logarithmic_time_axis_has_decimal_labels() -> None:
    (axes,) = (figure := Figure()).subplots(1, 1, squeeze=False).flat
    log_x_in_seconds(axes, 0.256, 8.25)
    axes.set_xlim(0.25, 9.0)
    figure.canvas.draw()
    said = [label.get_text() for label in axes.get_xticklabels() if label.get_visible()]
    assert {"0.5", "1", "2", "5"} <= set(said)
    assert {label.get_text() for label in axes.get_xticklabels(minor=True)} == {""}


class Drawn(StepPatch):
    """A line that knows how often it was drawn."""

    times = 0

    def draw(self, renderer: Any) -> None:
        """Draw it."""
        Drawn.times += 1
        super().draw(renderer)


def test_figure_is_drawn_once_with_matplotlibs_layout(tmp_path: Path) -> None:
    def draw(canvas: Figure) -> None:
        (axes,) = new_axes(canvas)
        axes.add_patch(Drawn([1.0, 2.0], edges=[0.0, 1.0, 2.0]))
        axes.set(xlabel="time (s)", ylabel="goodput (Mbit/s)", title="A title")

    save_svg(new_figure(draw), tmp_path / "once.svg")
    assert Drawn.times == 1
    # The same file as from the way that draws everything twice.
    metadata = {"Date": None, "Creator": "bentpipe"}
    figure = new_figure(draw)
    with mpl.rc_context({"svg.hashsalt": "bentpipe", "svg.fonttype": "path"}):
        figure.savefig(tmp_path / "twice.svg", metadata=metadata)
    assert Drawn.times == 3
    assert (tmp_path / "once.svg").read_bytes() == (tmp_path / "twice.svg").read_bytes()


def placed(draw: Any, *, engine: LayoutEngine | None = None) -> tuple[tuple[float, ...], int]:
    """Return where the axes are, and how often they were measured for it."""
    figure = new_figure(draw)
    with mpl.rc_context(_STYLE):
        if engine is not None:
            figure.set_layout_engine(engine)
        (axes,) = figure.axes
        measure, times = axes.get_tightbbox, 0

        def counting(*arguments: Any, **named: Any) -> Any:
            nonlocal times
            times += 1
            return measure(*arguments, **named)

        axes.get_tightbbox = counting  # type: ignore[method-assign]
        laid_out = figure.get_layout_engine()
        assert laid_out is not None
        laid_out.execute(figure)
    return axes.get_position().bounds, times


@pytest.mark.parametrize(
    ("most", "label", "right", "measured"),
    [
        # As nearly all are; a number at the end stands out; a shorter axis has other numbers.
        (3.7, "time (s)", None, 1),
        (3.7, "time (s)", 10.0, 2),
        (3.7, "\n".join(8 * ["a label of many lines"]), None, 2),
    ],
)
def test_axes_match_constrained_layout_and_are_measured_once(
    most: float, label: str, right: float | None, measured: int
) -> None:
    def draw(canvas: Figure) -> None:
        (axes,) = new_axes(canvas)
        for name in ("one", "two"):
            axes.plot([0.0, 9.0], [0.0, most], label=name)
        axes.set(xlabel=label, ylabel="goodput (Mbit/s)", title="A title")
        axes.set_xlim(0.0, right)
        legend_below(canvas, axes)

    place, times = placed(draw)
    expected, twice = placed(draw, engine=ConstrainedLayoutEngine())
    assert place == pytest.approx(expected, abs=1e-9)
    assert (times, twice) == (measured, 2)


LATE = {**WINDOW, "duration": "90 min", "flows.update": {**WINDOW["flows.update"], "start": "1 h"}}


def test_late_flows_are_shown_from_their_start(tmp_path: Path) -> None:
    """An hour in which nothing happened left the rest a line at the right."""
    result = ran(LATE)
    axes, *_ = overview(result)
    data = next(steps(axes))
    delivered = (data.values * np.diff(data.edges)).sum() / 8
    scale = 1e6 if "Mbit" in axes.get_ylabel() else 1e3
    assert delivered * scale == pytest.approx(2_000_000, rel=0.01)
    for each in overview(result):
        left, right = each.get_xlim()
        assert 3590.0 < left < 3600.0
        assert right < 3700.0
    files, _ = write_run_plots(result, tmp_path)
    assert {"update.time-sequence.svg", "update.goodput.svg"} <= {file.name for file in files}
    # A flow that begins with the run is shown from the run's beginning.
    assert all(each.get_xlim()[0] == 0.0 for each in overview(ran(WINDOW)))


def test_flow_without_deliveries_has_no_goodput_plot(tmp_path: Path) -> None:
    errors = {"forward": {"errors": {"packet_loss_rate": 1.0}}}
    lost = {**WINDOW, "links.satellite": {**WINDOW["links.satellite"], **errors}}
    result = ran(lost)
    goodput, losses = overview(result)
    assert labels(goodput) == ["update: nothing delivered"]
    assert goodput.get_ylim() == (0.0, 1.0)
    assert labels(losses)
    names = {file.name for file in write_run_plots(result, tmp_path)[0]}
    assert names == {"overview.svg", "update.congestion-window.svg"}


def test_long_title_is_above_the_note() -> None:
    for name in ("crowd", "a-name-that-is-as-long-as-names-may-be"):
        result = ran({**CROWD, "name": name})
        figure = overview_figure(result.series, result.summary)
        assert figure is not None
        figure.draw_without_rendering()
        axes = figure.axes[0]
        (note,) = axes.texts
        title = axes._left_title  # type: ignore[attr-defined]
        assert title.get_text().startswith(name)
        assert not note.get_window_extent().overlaps(title.get_window_extent())
        assert title.get_window_extent().y1 <= figure.bbox.y1


def test_packet_axis_has_integer_ticks() -> None:
    def draw(canvas: Figure) -> None:
        (axes,) = new_axes(canvas)
        draw_queue(axes, {"queue": queue})

    queue = Series(times_s=np.arange(1.0, 6.0), values=np.array([0, 1, 4, 2, 0.0]), unit="packets")
    (axes,) = new_figure(draw).axes
    assert axes.get_yticks().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_single_gateway_line_is_named_in_the_axis_label() -> None:
    held = Series(times_s=np.array([0.0, 1.0]), values=np.array([0.0, 5e5]), unit="B")
    said = []
    for gauges in ({"buffered": held}, {"buffered": held, "promised": held}):
        (axes,) = Figure().subplots(1, 1, squeeze=False).flat
        draw_gateway(axes, gauges)
        said.append(axes.get_ylabel())
    assert said == ["buffered, all connections together (kB)", "all connections together (kB)"]


def one_curve(
    low: float, middle: float, high: float, *, ticks: tuple[str, ...] | None = None
) -> Curves:
    """Return a sweep's curve through three values of a key, the same goodput at each."""
    points = tuple((float(x), low, middle, high) for x in range(3))
    return Curves(
        title="queues",
        x_label="queue",
        log_x=False,
        ticks=ticks,
        legend="",
        curves=(Curve(label="", points=points),),
    )


def test_long_tick_labels_are_rotated_and_within_the_figure() -> None:
    short, long = (
        ("reno", "cubic", "hybla"),
        tuple(f"a queue of {n} packets, no more" for n in (1, 2, 3)),
    )
    for ticks in (short, long):
        draw = partial(draw_sweep, panels=[one_curve(1e6, 2e6, 3e6, ticks=ticks)])
        place, _ = placed(draw)
        expected, _ = placed(draw, engine=ConstrainedLayoutEngine())
        assert place == pytest.approx(expected, abs=1e-9)
        figure = new_figure(draw)
        figure.draw_without_rendering()
        names = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
        assert min(name.x0 for name in names) >= 0.0
        assert {label.get_rotation() for label in figure.axes[0].get_xticklabels()} == {
            30.0 if ticks is long else 0.0
        }


def test_sweep_without_goodput_has_a_unit_axis() -> None:
    (axes,) = new_figure(partial(draw_sweep, panels=[one_curve(0.0, 0.0, 0.0)])).axes
    assert axes.get_ylim() == (0.0, 1.0)


def test_advice_plot_titles_do_not_overlap() -> None:
    limits = {"slow_start": 1.0}
    title = "a-very-long-name-that-somebody-gave-to-it"
    draw = partial(
        draw_advice, rows=[("as it is", 1e6, limits), ("hybla", 2e6, limits)], title=title
    )
    figure = new_figure(draw, width=9.6, height=3.0)
    figure.draw_without_rendering()
    one, other = (axes._left_title.get_window_extent() for axes in figure.axes)  # type: ignore[attr-defined]
    assert not one.overlaps(other)
    assert one.y1 <= figure.bbox.y1


def _office(**flows: Any) -> dict[str, Any]:
    return {
        "name": "office",
        "duration": "20 s",
        "hosts": {"server": {}, "pc": {"count": 4}},
        "gateways": {"box": {}},
        "links": {
            "satellite": {"between": ["server", "box"], "rate": "8 Mbit/s", "delay": "100 ms"},
            "lan": {"between": ["box", "pc"], "rate": "4 Mbit/s", "delay": "1 ms"},
        },
        "flows": flows,
    }


def test_queues_of_equal_links_are_one_line() -> None:
    transfer = {"from": "server", "app": {"kind": "bulk", "size": "2 MB"}}
    result = ran(_office(one={**transfer, "to": "pc-1"}, three={**transfer, "to": "pc-3"}))
    queues = overview(result)[1]
    assert queues.get_ylabel().startswith("longest queue")
    assert "lan.forward, longest of 2 (of 4)" in labels(queues)
    assert not any(label.startswith("lan-") for label in labels(queues))


def test_short_queues_without_drops_are_omitted_beside_long_ones() -> None:
    short = {
        "name": "beside",
        "duration": "20 s",
        "hosts": {"a": {}, "b": {}},
        "links.satellite": {
            "between": ["a", "b"],
            "delay": "250 ms",
            "forward": {"rate": "2 Mbit/s", "queue": {"limit": "150 packets"}},
            "return": {"rate": "256 kbit/s"},
        },
        "flows": {
            "file": {"from": "a", "to": "b", "app": {"kind": "bulk"}},
            "words": {
                "from": "b",
                "to": "a",
                "app": {"kind": "packets", "size": "100 B", "interval": "exponential(20 ms)"},
            },
        },
    }
    drawn = ran(short)
    (back,) = [link for link in drawn.summary.links if link.name == "satellite.return"]
    assert 2 <= back.queue_max_packets <= 7
    assert labels(overview(drawn)[1]) == ["satellite.forward"]
    tight = ran(short, **{"links.satellite.return.queue": {"limit": "2 packets"}})
    assert "satellite.return" in labels(overview(tight)[1])


def test_single_curve_is_labelled_and_equal_curves_are_visible() -> None:
    curve = [100.0 + percent for percent in range(101)]
    for names in (["tills: response"], ["paper: delay", "ticker: delay"]):
        curves: dict[str, Sequence[float]] = dict.fromkeys(names, curve)
        for draw in (
            partial(draw_times, curves=curves, title="n: times"),
            partial(draw_received, curves=curves, scenario="n"),
        ):
            figure = new_figure(draw)
            (legend,) = figure.legends
            assert [text.get_text() for text in legend.get_texts()] == names
            styles = [line.get_linestyle() for line in figure.axes[0].lines]
            assert len(set(styles)) == len(names)


def test_round_trip_byte_and_utilization_probes_are_plotted(tmp_path: Path) -> None:
    transfer = {"from": "server", "to": "pc-1", "app": {"kind": "bulk", "size": "2 MB"}}
    series = [
        *("one.measured_rtt", "one.smoothed_rtt", "one.retransmission_timeout"),
        *("satellite.forward.queue_bytes", "satellite.forward.utilization"),
    ]
    scenario = _office(one=transfer) | {"probes": {"series": series, "interval": "100 ms"}}
    files, _ = write_run_plots(ran(scenario), tmp_path)
    assert {file.name for file in files} == {
        *("one.round-trip.svg", "satellite.forward.queue-bytes.svg"),
        "satellite.forward.utilization.svg",
    }


def test_round_trip_axis_is_not_scaled_to_the_timeout() -> None:
    def drawn(**values: float) -> Axes:
        axes = Figure().add_subplot()
        times_s = np.arange(5.0)
        probes = {
            name: Series(times_s=times_s, values=np.full(5, value), unit="s")
            for name, value in values.items()
        }
        draw_round_trips(axes, probes)
        return axes

    axes = drawn(smoothed_rtt=0.5)
    assert axes.get_ylabel() == "smoothed round trip (ms)"
    assert np.asarray(axes.lines[0].get_ydata()).max() == pytest.approx(500.0)
    axes = drawn(measured_rtt=3.0, retransmission_timeout=60.0)
    assert axes.get_ylabel() == "time (s)"
    assert axes.get_ylim() == (0.0, 12.0)


def test_command_explains_a_missing_overview(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transfer = {"from": "server", "to": "pc-1", "app": {"kind": "bulk", "size": "100 kB"}}
    for series, said in ((["one.smoothed_rtt"], True), (["one.goodput"], False)):
        scenario = _office(one=transfer) | {"probes": {"series": series}}
        file = tmp_path / "office.toml"
        file.write_text(bentpipe.Scenario.of(scenario).text or "", encoding="utf-8")
        assert cli.execute(["run", str(file), "--out", str(tmp_path / "out")]) == 0
        assert ("no overview.svg" in capsys.readouterr().err) is said
        assert (tmp_path / "out" / "overview.svg").exists() is not said


def test_sweep_axis_of_counts_has_integer_ticks() -> None:
    points = tuple((x, 1e6, 2e6, 3e6) for x in (1.0, 2.0, 3.0))
    found = Curves(
        title="users",
        x_label="count",
        log_x=False,
        ticks=None,
        legend="",
        curves=(Curve(label="", points=points),),
        y_label="all flows' goodput, added up",
    )
    figure = new_figure(partial(draw_sweep, panels=[found]))
    (axes,) = figure.axes
    assert all(float(tick).is_integer() for tick in axes.get_xticks())
    assert axes.get_ylabel() == "all flows' goodput, added up (Mbit/s)"


@pytest.mark.parametrize(("mails", "said"), [(1, False), (3, True)])
def test_restarted_stream_probes_are_labelled_as_the_last(mails: int, said: bool) -> None:
    app = {"kind": "mail", "mails": mails, "size": "50 kB", "pause": "1 s"}
    result = ran(_office(post={"from": "pc-1", "to": "server", "app": app}))
    probes = {
        name.rpartition(".")[2]: series
        for name, series in result.series.items()
        if name.startswith("post.")
    }
    more: Any = {"subject": "post", "probes": probes, "when": (0.0, 20.0), "width_s": 0.2}
    (axes,) = new_figure(partial(draw_run, kind="time-sequence", **more)).axes
    assert ("whichever connection" in axes.get_title(loc="left")) is said


def test_oscillating_bytes_are_not_drawn_as_a_solid_block() -> None:
    saw = Series(
        times_s=np.arange(1.0, 20_001.0) / 100.0,
        values=np.tile([0.0, 30e3], 10_000),
        unit="B",
    )
    used = Series(times_s=saw.times_s, values=saw.values / 30e3, unit="")
    for kind, name, series in (
        ("queue-bytes", "queue_bytes", saw),
        ("utilization", "utilization", used),
    ):
        more: Any = {"subject": "l", "probes": {name: series}, "when": (0.0, 200.0)}
        (axes,) = new_figure(partial(draw_run, kind=kind, width_s=0.5, **more)).axes
        for values, edges, _ in steps(axes):
            assert len(edges) < 1_000
            assert len(set(values.tolist())) == 1


def test_plots_cover_each_kind_of_subject_first() -> None:
    moving = Series(times_s=np.array([0.0, 1.0]), values=np.array([1e4, 2e4]), unit="B")
    names = [
        *(f"pages-{number}" for number in range(1, 16)),
        *(f"calls-{number}" for number in range(1, 16)),
        "backup",
    ]
    chosen = most_telling({name: {"congestion_window": moving} for name in names})
    assert len(chosen) == MOST_SUBJECTS
    assert {"pages-1", "calls-1", "backup"} <= chosen.keys()
    kinds = [name.partition("-")[0] for name in chosen]
    assert abs(kinds.count("pages") - kinds.count("calls")) <= 1
