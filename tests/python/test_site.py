"""The documentation site: it builds without warnings, and its links and its search work."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from .conftest import load_script

ROOT = Path(__file__).parents[2]

builder = load_script(ROOT / "tools" / "build_site.py")
pages = load_script(ROOT / "tools" / "site_pages.py")
links = load_script(ROOT / "tools" / "site_links.py")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the built site; building it checks every link."""
    if builder.mdbook() is None:
        pytest.skip("mdbook is not installed: make setup")
    folder = tmp_path_factory.mktemp("site")
    builder.build(folder)
    return folder


def test_every_page_is_built(site: Path) -> None:
    for source, place in pages.page_places().items():
        if source.suffix in {".md", ".ipynb"} and source != pages.SUMMARY:
            assert (site / place.with_suffix(".html")).is_file(), source


def test_dead_links_and_anchors_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#there">b</a> <a href="#here">')
    (tmp_path / "b.html").write_text('<a href="c.html">c</a><script src="https://x.org/y.js">')
    assert list(links.problems(tmp_path)) == [
        "a.html:1: b.html#there: no such anchor",
        "b.html:1: c.html: no such file",
        "b.html:1: https://x.org/y.js: is loaded from elsewhere",
    ]


def test_a_page_outside_of_the_navigation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pages.with_folders
    monkeypatch.setattr(
        pages, "with_folders", lambda text: whole(text).replace("(pacing.md)", "(tcp.md)")
    )
    with pytest.raises(pages.PageError, match=r"docs/SUMMARY\.md lacks docs/pacing\.md"):
        pages.page_places()


def test_links_are_those_of_the_site() -> None:
    path = pages.PurePosixPath
    places = {path("docs/a/b.md"): path("a/b.md"), path("TOP.md"): path("project/top.md")}
    copied: set[Path] = set()
    text = "[`code`](../../TOP.md#x), `[no](link)` and\n```\n[no](link)\n```\n[m](../../Makefile)"
    assert pages.with_site_links(text, path("docs/a/b.md"), places, copied) == (
        "[`code`](../project/top.md#x), `[no](link)` and\n```\n[no](link)\n```\n"
        "[m](../source/Makefile.txt)"
    )
    assert copied == {path("Makefile")}
    with pytest.raises(pages.PageError, match=r"docs/a/b\.md: no such file: none\.md"):
        pages.with_site_links("[x](none.md)", path("docs/a/b.md"), places, copied)


def test_links_of_the_readme_lead_somewhere(site: Path) -> None:
    name = pages.PurePosixPath("README.md")
    places = pages.page_places() | {name: name}
    text = pages.with_site_links((ROOT / name).read_text("utf-8"), name, places, set())
    (site / "readme.html").write_text(
        "".join(f'<a href="{link.replace(".md", ".html")}">' for link in pages.LINK.findall(text))
    )
    found = [each for each in links.problems(site) if each.startswith("readme.html")]
    # The site copies no file that only the README links to, and shows its contents otherwise.
    rest = [each for each in found if not re.search(": (source/|SUMMARY)", each)]
    assert rest == []


def test_a_folder_without_a_site_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    if builder.mdbook() is None:
        pytest.skip("mdbook is not installed: make setup")
    with pytest.raises(builder.SiteError, match="the folder is not empty, and has no site"):
        builder.build(tmp_path)
    assert (tmp_path / "thesis.tex").is_file()


# A question as a user types it, and the page or section that answers it.
QUESTIONS = {
    "why is my upload slow over a 9.6k modem": "faq.html#why-is-my-upload-or-download-slow",
    "does a PEP help QUIC": "faq.html#does-a-pep-help-quic",
    "how do I set delay asymmetric": "faq.html#how-do-i-set-a-different-delay",
    "plot cwnd": "faq.html#how-do-i-plot-cwnd",
    "what is ack suppression": "glossary.html#ack-suppression",
    "bufferbloat": "faq.html#why-does-the-latency-grow",
    "simulate starlink handover": "faq.html#how-do-i-simulate-starlink",
    "rain fade adaptive modulation": "changing-paths.html",
    "run my own congestion control in python": "faq.html#how-do-i-run-my-own",
    "emulate iperf over satellite": "how-to/emulate-a-program.html",
    "packet loss rate bit errors": "scenario.html#errors",
    "unknown key did you mean": "errors.html#keys",
    "export pcap wireshark": "faq.html#how-do-i-get-a-pcap-file",
    "sweep on dask cluster": "sweep.html#on-a-cluster",
    "install pepsal gateway linux interfaces": "how-to/install-a-gateway.html",
    "which congestion control for geo satellite": "faq.html#which-congestion-control-is-best",
    "receive window limits throughput": "faq.html#why-is-my-throughput",
    "random seeds how many runs": "faq.html#how-many-seeds",
    "DVB-RCS2 capacity request delay": "capacity-on-demand.html",
    "compare with ns-3": "performance.html#beside-ns-2-and-ns-3",
    "exit status of the command line": "command-line.html",
    "mean opinion score of calls": "applications.html#voice",
    "parquet columns of a sweep": "sweep.html#the-results",
    "hybrid gateway retransmission timer": "hybrid-gateway.html",
    "how accurate is predict": "predict.html",
    "fit a scenario to measurements iperf3": "fit.html",
    "install debian package": "installation.html",
    "report for a customer": "report.html",
    "evaluate my congestion control RFC 9743": "evaluate.html",
}


def test_search_has_the_answer_among_the_first_three(site: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    run = subprocess.run(
        [node, str(ROOT / "tools" / "search_site.mjs"), str(site), *QUESTIONS],
        capture_output=True,
        text=True,
        check=True,
    )
    found = [json.loads(line)[:3] for line in run.stdout.splitlines()]
    missed = {
        question: first
        for (question, answer), first in zip(QUESTIONS.items(), found, strict=True)
        if not any(url.startswith(answer) for url in first)
    }
    assert missed == {}


def test_scenarios_and_the_tour_lead_to_the_workbench() -> None:
    scenario = '```toml\nname = "a"\nduration = "1 s"\n```\n'
    page = pages.with_workbench(f"# Title\n{scenario}", PurePosixPath("how-to/a.md"))
    assert page.startswith(
        f"# Title\n{scenario}\n[Open in the workbench](../workbench/index.html#s="
    )
    tour = pages.with_workbench("# Tour\ntext\n", PurePosixPath("tour.md"))
    assert "[Take the tour in the workbench](workbench/index.html#e=tour)" in tour
