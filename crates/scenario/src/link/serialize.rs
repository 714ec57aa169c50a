//! Links as data.

use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::access::serialize::access_data;
use crate::acks::serialize::acks_data;
use crate::acm::serialize::acm_data;
use crate::changes::serialize::changes_data;
use crate::link::errors::errors_data;
use crate::link::settings::{Direction, Link, Way};

/// Returns a link as data; `lag` is the number of frames from a request of a direction to its
/// grant, if it has capacity on demand.
pub(crate) fn link_data<'a>(
    link: &Link,
    lag: impl Fn(Way) -> Option<u64>,
    duration: Span,
    name_of: impl Fn(usize) -> &'a str,
) -> Value {
    json!({
        "name": link.name,
        "between": link.between.map(&name_of),
        "far_ends": link.broadcast.then(|| link.far_ends().map(&name_of).collect::<Vec<_>>()),
        "mtu_bytes": link.mtu,
        "fragment": link.fragments,
        // Null if the directions differ.
        "framing": link.common_framing(),
        "arp": link.arp.map(|arp| json!({
            "timeout_s": arp.timeout.as_secs_f64(),
            "queue_packets": arp.queue_packets,
        })),
        "forward": direction_data(&link.forward, lag(Way::Forward), duration),
        "return": link.backward.as_ref().map(|back| direction_data(back, lag(Way::Return), duration)),
    })
}

fn direction_data(direction: &Direction, lag: Option<u64>, duration: Span) -> Value {
    let mut data = json!({
        "rate_bps": direction.rate.bits_per_second(),
        "delay_s": direction.delay.as_secs_f64(),
        "queue": direction.queue.measured(),
        "errors": errors_data(&direction.errors),
        "redundancy": direction.redundancy.get(),
        "access": direction.access.as_ref().zip(lag).map(|(of, lag)| access_data(of, lag)),
        "acks": acks_data(direction.acks),
        "compression": direction.compression,
        "framing": direction.framing,
        "tunnel": direction.tunnel,
        "changes": direction.changes.as_ref().map(|of| changes_data(direction, of, duration)),
    });
    if let Some(acm) = &direction.acm {
        data["acm"] = acm_data(acm);
    }
    data
}
