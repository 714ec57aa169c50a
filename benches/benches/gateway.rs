//! Benchmarks of gateways without a network: nanoseconds per packet, by the number of connections
//! and their outstanding data, and connections per second.

use bentpipe_benches::gateways::{Fleet, hybrid, split};
use bentpipe_types::Agent;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn packets<A: Agent>(criterion: &mut Criterion, kind: &str, make: fn() -> A, cases: &[(u16, u32)]) {
    let mut group = criterion.benchmark_group(format!("{kind} gateway, packets"));
    group.throughput(Throughput::Elements(3));
    for (connections, outstanding) in cases.iter().copied() {
        let name = format!("{connections} connections, {outstanding} segments unacknowledged");
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            let mut fleet = Fleet::new(make(), connections);
            // Opens the congestion window far enough.
            fleet.transfer(2 * outstanding);
            fleet.fill(outstanding);
            bencher.iter(|| fleet.turn());
            fleet.expect_all_carried();
        });
    }
    group.finish();
}

fn connections<A: Agent>(criterion: &mut Criterion, kind: &str, make: fn() -> A) {
    let mut group = criterion.benchmark_group(format!("{kind} gateway, connections"));
    group.throughput(Throughput::Elements(1));
    for others in [0, 10_000] {
        group.bench_function(BenchmarkId::new("set-up beside", others), |bencher| {
            let mut fleet = Fleet::new(make(), others);
            bencher.iter(|| fleet.open_and_reset());
            fleet.expect_all_carried();
        });
    }
    group.finish();
}

fn both(criterion: &mut Criterion) {
    let cases = [(1, 0), (1, 500), (100, 20), (10_000, 2), (10_000, 20)];
    packets(criterion, "split", split, &cases);
    packets(criterion, "hybrid", hybrid, &cases);
    connections(criterion, "split", split);
    connections(criterion, "hybrid", hybrid);
}

criterion_group!(benches, both);
criterion_main!(benches);
