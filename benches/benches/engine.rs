//! Benchmarks of the engine: packet hops with empty handlers.

use bentpipe_types::{Span, Time};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// 1000 packets bounce for ten simulated seconds, slightly more than 16 hops each.
fn packet_hops(criterion: &mut Criterion) {
    let until = Time::ZERO + Span::from_secs(10);
    let hops = {
        let mut network = bentpipe_benches::mirrors(1_000);
        network.run_until(until);
        network.outcome().packet_hops
    };
    let mut group = criterion.benchmark_group("engine");
    group.throughput(Throughput::Elements(hops));
    group.bench_function("empty packet-hops", |bencher| {
        bencher.iter_batched_ref(
            || bentpipe_benches::mirrors(1_000),
            |network| network.run_until(until),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, packet_hops);
criterion_main!(benches);
