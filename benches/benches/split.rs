//! Benchmarks of a split gateway in whole runs: packets per second compared to a router, with one
//! connection and with 9,000, and connections per second. The hosts' work is included, so that the
//! gateway's cost is the difference to the router's.

use std::hint::black_box;

use bentpipe_scenario::{RunOptions, Scenario, Summary};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn scenario(kind: &str, connections: u32, bytes: u64) -> Scenario {
    let split = if kind == "split" {
        "facing = \"far\"\nmemory = \"64 GiB\""
    } else {
        ""
    };
    let text = format!(
        r#"
name = "bench-split"
duration = "600 s"
[hosts.server]
count = {connections}
[hosts.client]
count = {connections}
[gateways.hub]
kind = "{kind}"
{split}
[links.near]
between = ["server", "hub"]
rate = "10 Gbit/s"
delay = "1 ms"
queue = {{ limit = "1000000 packets" }}
[links.far]
between = ["hub", "terminal"]
rate = "10 Gbit/s"
delay = "10 ms"
queue = {{ limit = "1000000 packets" }}
[gateways.terminal]
[links.home]
between = ["terminal", "client"]
rate = "10 Gbit/s"
delay = "1 ms"
queue = {{ limit = "1000000 packets" }}
[flows.transfer]
from = "server"
to = "client"
app = {{ kind = "bulk", size = "{bytes} B" }}
"#
    );
    Scenario::parse(&text, "split.toml", &[]).expect("a sound scenario")
}

fn run(scenario: &Scenario) -> Summary {
    let output = scenario.run(&RunOptions::default()).expect("it runs");
    output.summary
}

/// Returns the number of packets that reach the gateway over its two links.
fn gateway_packets(summary: &Summary) -> u64 {
    let ends_there =
        |name: &str| name.starts_with("near") && name.ends_with("forward") || name == "far.return";
    (summary.links.iter())
        .filter(|link| ends_there(&link.name))
        .map(|link| link.packets_delivered)
        .sum()
}

fn packets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("split gateway, packets");
    group.sample_size(10);
    for (connections, bytes) in [(1, 100_000_000), (9_000, 30_000)] {
        for kind in ["router", "split"] {
            let scenario = scenario(kind, connections, bytes);
            let summary = run(&scenario);
            assert!(summary.flows.iter().all(|flow| flow.finish_s.is_some()));
            group.throughput(Throughput::Elements(gateway_packets(&summary)));
            group.bench_function(BenchmarkId::new(kind, connections), |bencher| {
                bencher.iter(|| black_box(run(&scenario)));
            });
        }
    }
    group.finish();
}

fn connections(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("split gateway, connections");
    group.sample_size(10);
    let count = 9_000;
    group.throughput(Throughput::Elements(count));
    for kind in ["router", "split"] {
        let scenario = scenario(kind, count as u32, 100);
        group.bench_function(kind, |bencher| bencher.iter(|| black_box(run(&scenario))));
    }
    group.finish();
}

criterion_group!(benches, packets, connections);
criterion_main!(benches);
