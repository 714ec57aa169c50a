"""The Python interface as who sits at a prompt or in a notebook meets it."""

from __future__ import annotations

import inspect
import json
import re
import sys
import tomllib
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bentpipe
from bentpipe import toml
from bentpipe.errors import RequestError
from bentpipe.scenario import ready_made
from bentpipe.units import format_rate

from .conftest import load_script

ROOT = Path(__file__).parents[2]
NETWORK: dict[str, Any] = {
    "name": "small",
    "duration": "20 s",
    "hosts": {"server": {}, "client": {}},
    "links.satellite": {"between": ["server", "client"], "rate": "2 Mbit/s", "delay": "250 ms"},
    "flows.download": {"from": "server", "to": "client", "app": {"kind": "bulk", "size": "300 kB"}},
}


def tool(name: str) -> Any:
    return load_script(ROOT / "tools" / f"{name}.py")


def test_dir_lists_exactly_the_public_names() -> None:
    assert dir(bentpipe) == sorted(bentpipe.__all__)
    for name in bentpipe.__all__:
        value = getattr(bentpipe, name)
        assert name == "__version__" or inspect.getdoc(value)
    assert {"run", "predict", "sweep", "advise", "model", "Scenario"} <= set(dir(bentpipe))
    with pytest.raises(AttributeError, match="frobnicate"):
        bentpipe.__getattr__("frobnicate")


def test_dict_path_and_scenario_give_equal_results(tmp_path: Path) -> None:
    scenario = bentpipe.Scenario.of(NETWORK)
    file = tmp_path / "small.toml"
    file.write_text(scenario.text or "", encoding="utf-8")
    summaries = []
    for source in (NETWORK, scenario, file, str(file), bentpipe.Scenario(file)):
        summary = json.loads(bentpipe.run(source, seed=3).summary_json)
        del summary["wall_s"]
        summaries.append(summary)
    assert all(each == summaries[0] for each in summaries)
    assert bentpipe.predict(NETWORK) == bentpipe.predict(file)


def test_errors_in_a_scenario_dict_name_the_key() -> None:
    wrong = {**NETWORK, "links.satellite.dealy": "1 ms"}
    with pytest.raises(bentpipe.ScenarioError, match=r'^scenario:\d+: .*dealy.*"delay"'):
        bentpipe.run(wrong)
    with pytest.raises(TypeError, match="expected what TOML has, got object"):
        bentpipe.run({**NETWORK, "seed": object()})
    with pytest.raises(TypeError, match="a dict, got int"):
        bentpipe.run(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected settings as a dict"):
        bentpipe.run(NETWORK, settings=["seed=2"])  # type: ignore[arg-type]


def test_numpy_numbers_are_accepted() -> None:
    losses = {"links.satellite.errors.packet_loss_rate": np.float64(0.01), "seed": np.int64(9)}
    assert bentpipe.run(NETWORK, settings=losses).summary.seed == 9


def test_numpy_arrays_are_accepted() -> None:
    lost = {"links.satellite.forward.errors.lost_packets": np.array([3, 4])}
    result = bentpipe.run(NETWORK, settings=lost)
    assert result.link("satellite.forward").packets_lost == 2


@pytest.mark.parametrize("seed", [-1, 1.5, "x", 2**64, float("nan")])
def test_invalid_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(RequestError, match=r"^seed .*: expected a whole number from 0 to"):
        bentpipe.run(NETWORK, seed=seed)


def test_invalid_settings_and_captures_are_refused() -> None:
    with pytest.raises(TypeError, match=r"settings, seed: expected what TOML has, got NoneType"):
        bentpipe.run(NETWORK, settings={"seed": None})
    settings: Any = {3: "x"}
    with pytest.raises(TypeError, match=r'expected a key such as "links\.'):
        bentpipe.run(NETWORK, settings=settings)
    captures: Any = ("satellite", ["satellite"], [("satellite",)])
    for pcap in captures:
        with pytest.raises(TypeError, match="expected pcap as pairs"):
            bentpipe.run(NETWORK, pcap=pcap)


def test_keyword_errors_are_type_errors() -> None:
    functions: list[Any] = [bentpipe.run, bentpipe.predict, bentpipe.sweep, bentpipe.advise]
    for function in functions:
        with pytest.raises(TypeError, match="unexpected keyword argument 'sede'"):
            function(NETWORK, sede=1)
        with pytest.raises(TypeError, match="positional argument"):
            function(NETWORK, 1)
    # The option --workers is called workers in Python.
    sweep = {"scenario": "vsat", "axes": {"seed": {"count": 2}}}
    with pytest.raises(RequestError, match=r"^workers 0: expected 1 or more$") as raised:
        bentpipe.sweep(sweep, workers=0)
    assert raised.value.command_line_message == "--workers 0: expected 1 or more"
    assert str(RequestError("my--file.toml: no such file")) == "my--file.toml: no such file"


def test_repr_and_html_summarize_the_result() -> None:
    result = bentpipe.run(NETWORK)
    rate = f"{result.flow().goodput_bps / 1e3:.0f} kbit/s"
    assert re.fullmatch(
        rf"<RunResult small, seed 1: download finished at {rate}, .+>", repr(result)
    )
    html = result._repr_html_()
    assert rate in html
    assert "satellite.forward" in html
    assert "<svg" in html
    assert "<?xml" not in html
    without = bentpipe.run(NETWORK, no_probes=True)
    assert "<svg" not in without._repr_html_()
    crowd = {**NETWORK, "hosts": {"server": {}, "client": {"count": 30}}}
    crowd["links.satellite"] = {**NETWORK["links.satellite"], "between": ["client", "server"]}
    many = bentpipe.run(crowd)
    assert "30 flows" in repr(many)
    # One row for what `count` made.
    html = many._repr_html_()
    assert "<td>download</td><td>30</td>" in html
    assert "download-1" not in html.partition("<svg")[0]


def test_data_frames_equal_the_summary() -> None:
    result = bentpipe.run(NETWORK, settings={"links.satellite.errors.packet_loss_rate": 0.01})
    flow = result.flow()
    for frame in (result.to_pandas(), result.to_polars()):
        assert list(frame["name"]) == ["download"]
        assert list(frame["goodput_bps"]) == [flow.goodput_bps]
        assert list(frame["rtt_ms_mean"]) == [flow.rtt_ms.mean]
        assert list(frame["limited_s_slow_start"]) == [flow.limited_s["slow_start"]]
    links = result.to_pandas("links")
    assert list(links["packets_lost"]) == [link.packets_lost for link in result.summary.links]
    samples = result.to_pandas("series")
    assert len(samples) == sum(len(each.times_s) for each in result.series.values())
    assert list(samples.columns) == ["series", "time_s", "value", "unit"]
    assert result.to_polars("series").shape == samples.shape
    with pytest.raises(ValueError, match="table must be one of 'flows', 'groups', 'links', "):
        result.to_pandas("flow")  # type: ignore[arg-type]


def test_data_frames_have_application_metrics() -> None:
    page = {"kind": "web", "page": "fixed", "objects": 2, "pages": 1}
    flows = {
        "visit": {"from": "client", "to": "server", "app": page},
        "call": {"from": "client", "to": "server", "app": {"kind": "voice", "lasts": "5 s"}},
    }
    result = bentpipe.run({**NETWORK, "flows": flows})
    visit, call = result.flow("visit"), result.flow("call")
    frame = result.to_pandas().set_index("name")
    assert frame["page_load_ms_mean"]["visit"] == visit.extra["page_load_ms"]["mean"]
    assert frame["call_mos_p50"]["call"] == call.extra["call_mos"]["p50"]
    assert np.isnan(frame["call_mos_p50"]["visit"])
    groups = result.to_pandas("groups").set_index("name")
    assert groups["outcomes_finished"]["visit"] == 1
    assert groups["page_load_ms_mean"]["visit"] == visit.extra["page_load_ms"]["mean"]


def test_gateway_data_frame_has_a_row_per_gateway() -> None:
    frame = bentpipe.run("geo-split", no_probes=True).to_pandas("gateways")
    assert set(frame["kind"]) == {"split"}
    assert (frame["connections_split"] > 0).all()


def test_link_data_frame_has_access_columns() -> None:
    result = bentpipe.run("rcs2-terminals", no_probes=True, settings={"duration": "5 s"})
    for frame in (result.to_pandas("links"), result.to_polars("links").to_pandas()):
        rows = frame.set_index("name")
        for link in result.summary.links:
            row = rows.loc[link.name]
            if link.access is None:
                assert np.isnan(row["access_used_bytes"])
                continue
            assert row["access_used_bytes"] == link.access.used_bytes
            assert row["access_carrier"] == "uplink"
            waited = link.access.wait_ms.mean
            assert (
                np.isnan(row["access_wait_ms_mean"])
                if waited is None
                else (row["access_wait_ms_mean"] == waited)
            )


@pytest.mark.parametrize("name", sorted(ready_made()))
def test_ready_made_scenarios_have_all_tables(name: str) -> None:
    result = bentpipe.run(name, settings={"duration": "10 s"})
    for table in ("flows", "groups", "links", "gateways", "series"):
        frame = result.to_pandas(table)
        assert not any(
            isinstance(value, list | dict | tuple) for value in frame.to_numpy().ravel()
        ), table
    links = result.to_pandas("links")
    assert links["packets_dropped"].sum() == sum(e.packets_dropped for e in result.summary.links)


def test_link_direction_is_found_by_name() -> None:
    result = bentpipe.run(NETWORK, no_probes=True)
    assert result.link("satellite.return") == result.summary.links[1]
    with pytest.raises(KeyError, match=r"no link 'satellite'; there are: satellite\.forward, "):
        result.link("satellite")


def test_dataset_has_every_sample() -> None:
    result = bentpipe.run(NETWORK, settings={"links.satellite.errors.packet_loss_rate": 0.02})
    dataset = result.to_xarray()
    assert set(dataset.data_vars) == set(result.series)
    for name, each in result.series.items():
        array = dataset[name]
        values = array.values[~np.isnan(array.values)]
        assert (values == each.values).all(), name
        assert array.attrs["units"] == each.unit
    assert len(bentpipe.run(NETWORK, no_probes=True).to_xarray().data_vars) == 0


def test_plot_returns_a_figure(tmp_path: Path) -> None:
    figure = bentpipe.run(NETWORK).plot()
    figure.savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 5000
    with pytest.raises(ValueError, match="default_probes=True"):
        bentpipe.run(NETWORK, no_probes=True).plot()


def test_prediction_has_a_figure_and_html() -> None:
    prediction = bentpipe.predict(NETWORK)
    (axes,) = prediction.plot().axes
    (flow,) = prediction.flows
    lowest = flow.lowest_bps
    assert axes.get_yticklabels()[0].get_text().removesuffix(" (estimate)") == flow.lowest
    assert format_rate(lowest) in [text.get_text() for text in axes.texts]
    html = prediction._repr_html_()
    assert f"<td>{flow.name}</td><td>{format_rate(lowest)}</td>" in html
    assert "<svg" in html


def test_sweep_has_html() -> None:
    sweep = {
        "scenario": NETWORK,
        "axes": {"links.satellite.delay": ["50 ms", "80 ms"], "seed": [3]},
    }
    html = bentpipe.sweep(sweep)._repr_html_()
    assert "2 cells" in html
    assert "<td>80 ms</td>" in html
    assert "<svg" in html
    # No axis for a figure.
    alone = bentpipe.sweep({"scenario": NETWORK, "axes": {"seed": {"count": 2}}})
    assert "<svg" not in alone._repr_html_()


def test_advice_has_a_figure_and_html() -> None:
    advice = bentpipe.advise(NETWORK, settings={"duration": "5 s"}, seeds=1)
    best = advice.remedies[0]
    html = advice._repr_html_()
    assert f"<td>{escape(best.remedy.name)}</td><td>{format_rate(best.goodput_bps)}</td>" in html
    assert "<svg" in html
    assert best.remedy.name.split()[0] in advice.plot().axes[0].get_yticklabels()[1].get_text()


values = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(2**62), 2**62),
        st.floats(allow_nan=False),
        st.text(max_size=20),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=3),
    ),
    max_leaves=8,
)
names = st.text(min_size=1, max_size=8).filter(lambda name: "." not in name)


@given(st.dictionaries(names, values, max_size=4))
def test_toml_document_round_trips(data: dict[str, Any]) -> None:
    def without_dots(value: Any) -> Any:
        if isinstance(value, dict):
            return {key.replace(".", "_"): without_dots(each) for key, each in value.items()}
        return [without_dots(each) for each in value] if isinstance(value, list) else value

    plain = without_dots(data)
    assert tomllib.loads(toml.document(plain)) == plain


def test_api_reference_is_generated_from_docstrings() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert page == tool("api_reference").reference(), "make docs"
    for name in bentpipe.__all__:
        assert name.startswith("_") or name in page


@pytest.mark.parametrize("name", ["first-look", "sweep-to-decision"])
def test_notebooks_run(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    notebook = json.loads((ROOT / "docs" / "notebooks" / f"{name}.ipynb").read_text("utf-8"))
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    again = tool("run_notebook").run_notebook(notebook)
    assert "IPython" not in set(sys.modules) - before
    images = 0
    for old, new in zip(notebook["cells"], again["cells"], strict=True):
        if new["cell_type"] != "code":
            continue
        for was, now in zip(old["outputs"], new["outputs"], strict=True):
            # Wall times aside, what the page shows is what is computed now.
            assert untimed(was.get("text", "")) == untimed(now.get("text", ""))
            data, shown = was.get("data", {}), now.get("data", {})
            assert data.keys() == shown.keys()
            assert data.get("text/plain") == shown.get("text/plain")
            images += "image/png" in shown
    assert images == 1


def untimed(text: str | list[str]) -> str:
    return re.sub(r"[\d.]+ s of computing", "", "".join(text))
