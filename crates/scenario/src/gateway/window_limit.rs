//! Detects connections that are limited by a hybrid gateway's window or store, and not by a link.

use bentpipe_types::{BitRate, Bytes, Span};

use crate::gateway::dispatch::Gateway;
use crate::gateway::hybrid::HybridGateway;
use crate::link::settings::Direction;
use crate::node::settings::NodeKind;
use crate::quantity::rate::Rate;
use crate::quantity::size::Size;
use crate::scenario::settings::Scenario;

/// Largest window without scaling: the field has 16 bits (RFC 9293 section 3.1).
const UNSCALED: u64 = u16::MAX as u64;

/// One direction of a connection through a gateway that acknowledges for its receiver.
struct Way<'s> {
    /// Lowest rate of the directions to the receiver.
    rate: BitRate,
    /// Propagation delay between the gateway and the server, there and back.
    to_server: Span,
    /// Propagation delay between the gateway and the host, there and back.
    to_host: Span,
    scaled: bool,
    gateway: &'s HybridGateway,
}

impl Scenario {
    /// Returns the setting that removes the limit, if the windows of the hybrid gateway at this
    /// node limit a connection: one line that begins with the key. Of several connections, it is
    /// about the one that needs the largest increase.
    #[must_use]
    pub fn window_note(&self, node: usize) -> Option<String> {
        let NodeKind::Gateway(Gateway::Hybrid(gateway)) = &self.nodes.get(node)?.kind else {
            return None;
        };
        let directions: Vec<(usize, &Direction)> = (self.links.iter().enumerate())
            .flat_map(|(index, link)| link.directions().map(move |(_, each)| (index, each)))
            .collect();
        // The node that each direction leads to.
        let ends: Vec<usize> = (self.links.iter())
            .flat_map(|link| {
                let [first, second] = link.between;
                let back = link.backward.as_ref().map(|_| first);
                std::iter::once(second).chain(back)
            })
            .collect();
        let routes = self.routes()?;
        let mut ways = Vec::new();
        for (flow, [there, back]) in self.flows.iter().zip(&routes) {
            let scaled = [flow.from, flow.to].into_iter().all(|end| {
                (self.tcp_of(end)).is_none_or(|settings| settings.config.window_scaling)
            });
            for (down, up) in [(there, back), (back, there)] {
                let leads_here = |direction: &usize| ends[*direction] == node;
                let (Some(before), Some(after)) = (
                    down.iter().position(leads_here),
                    up.iter().position(leads_here),
                ) else {
                    continue;
                };
                let (before, after) = (before + 1, after + 1);
                if down
                    .get(before)
                    .is_none_or(|next| directions[*next].0 != gateway.facing)
                {
                    continue;
                }
                let delays = |of: &[usize]| {
                    of.iter()
                        .fold(Span::ZERO, |sum, each| sum + directions[*each].1.delay)
                };
                let Some(rate) = down.iter().map(|each| directions[*each].1.rate).min() else {
                    continue;
                };
                ways.push(Way {
                    rate,
                    to_server: delays(&down[..before]) + delays(&up[after..]),
                    to_host: delays(&down[before..]) + delays(&up[..after]),
                    scaled,
                    gateway,
                });
            }
        }
        let lacking = ways.iter().filter_map(|way| Some((way, way.limit()?)));
        let (way, limit) = lacking.max_by(|(one, a), (other, b)| {
            let lacks = |way: &Way<'_>, limit: &Limit| way.bits() / limit.bits();
            lacks(one, a).total_cmp(&lacks(other, b))
        })?;
        Some(way.note(&self.nodes[node].name, &limit))
    }
}

/// A limit of bytes per round trip.
struct Limit {
    key: &'static str,
    bytes: u64,
    round_trip: Span,
}

impl Limit {
    fn bits(&self) -> f64 {
        8.0 * self.bytes as f64 / self.round_trip.as_secs_f64()
    }
}

impl Way<'_> {
    fn bits(&self) -> f64 {
        self.rate.bits_per_second() as f64
    }

    /// Returns the limit of the connection, if it is the gateway. The window allows its bytes once
    /// per round trip to the server. The store allows its bytes once per sum of both round trips,
    /// because room is reserved when the window is advertised and freed when the host has
    /// acknowledged.
    fn limit(&self) -> Option<Limit> {
        let window = self.gateway.receive_buffer.get();
        let window = if self.scaled {
            window
        } else {
            window.min(UNSCALED)
        };
        let limits = [
            Limit {
                key: "receive_buffer",
                bytes: window,
                round_trip: self.to_server,
            },
            Limit {
                key: "store",
                bytes: self.gateway.store.get(),
                round_trip: self.to_server + self.to_host,
            },
        ];
        let limits = limits
            .into_iter()
            .filter(|each| each.round_trip > Span::ZERO);
        let least = limits.min_by(|one, other| one.bits().total_cmp(&other.bits()))?;
        (least.bits() < self.bits()).then_some(least)
    }

    fn note(&self, name: &str, limit: &Limit) -> String {
        let fills = |round_trip: Span| self.bits() * round_trip.as_secs_f64() / 8.0;
        let (window, store) = (fills(self.to_server), fills(self.to_server + self.to_host));
        let as_one = self.gateway.store == self.gateway.receive_buffer;
        let mut wanted = Vec::new();
        // One key sets both limits if the other follows it. Without window scaling, a larger window
        // is impossible.
        if as_one && self.scaled {
            wanted.push(("receive_buffer", window.max(store)));
        } else {
            if window > self.gateway.receive_buffer.get() as f64 && self.scaled {
                wanted.push(("receive_buffer", window));
            }
            if store > self.gateway.store.get() as f64 {
                wanted.push(("store", store));
            }
        }
        let wanted: Vec<String> = (wanted.iter())
            .map(|(key, bytes)| format!("{key} = \"{}\"", Size(rounded_up(*bytes))))
            .collect();
        let instead = if wanted.is_empty() {
            "a larger window needs window scaling".to_owned()
        } else {
            format!("{} fills it", wanted.join(" and "))
        };
        // The key that is in the file, or would have to be.
        let key = if as_one { "receive_buffer" } else { limit.key };
        format!(
            "gateways.{name}.{key}: {} once a round trip of {:.0} ms is {} for a connection, of {}; {instead}",
            Size(Bytes::new(limit.bytes)),
            limit.round_trip.as_secs_f64() * 1e3,
            shown(limit.bits()),
            Rate(self.rate),
        )
    }
}

/// Rounds up to two digits.
fn rounded_up(bytes: f64) -> Bytes {
    let mut unit = 1.0;
    while bytes / unit > 100.0 {
        unit *= 10.0;
    }
    Bytes::new(((bytes / unit).ceil() * unit) as u64)
}

fn shown(bits: f64) -> String {
    if bits >= 1e6 {
        format!("{:.2} Mbit/s", bits / 1e6)
    } else {
        format!("{:.0} kbit/s", bits / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunOptions;

    /// Returns a download through a hybrid gateway at 10 Mbit/s with a round trip of 520 ms, of
    /// which 20 ms are to the server.
    fn scenario(gateway: &str, hosts: &str) -> Scenario {
        let text = format!(
            r#"
            name = "n"
            duration = "30 s"
            hosts.server.tcp = {{ {hosts} }}
            hosts.client.tcp = {{ {hosts} }}
            gateways.hub = {{ kind = "hybrid", facing = "satellite", tcp = {{}}, {gateway} }}
            links.lan = {{ between = ["server", "hub"], rate = "100 Mbit/s", delay = "10 ms" }}
            links.satellite = {{ between = ["hub", "client"], rate = "10 Mbit/s", delay = "250 ms" }}
            flows.download = {{ from = "server", to = "client", app = {{ kind = "bulk" }} }}
            "#
        );
        Scenario::parse(&text, "a test", &[]).expect("a sound scenario")
    }

    /// Runs it, and returns the notes and the goodput in Mbit/s.
    fn run(gateway: &str, hosts: &str) -> (Vec<String>, f64) {
        let summary = scenario(gateway, hosts)
            .run(&RunOptions::default())
            .expect("runs")
            .summary;
        (
            summary.gateways[0].notes.clone(),
            summary.flows[0].goodput_bps / 1e6,
        )
    }

    #[test]
    fn a_default_window_that_limits_a_geostationary_link_is_reported() {
        let (notes, goodput) = run("", "");
        let said = "gateways.hub.receive_buffer: 64 kB once a round trip of 520 ms is 985 kbit/s for a connection, of 10 Mbit/s; receive_buffer = \"650 kB\" fills it";
        assert_eq!(notes, [said]);
        assert!(goodput < 0.985, "{goodput}");
        // The setting that the note proposes removes the limit.
        let (notes, goodput) = run("receive_buffer = \"650 kB\"", "");
        assert_eq!(notes, [""; 0]);
        assert!(goodput > 7.0, "{goodput}");
    }

    #[test]
    fn window_and_store_limits_are_distinguished() {
        let (notes, _) = run("receive_buffer = \"20 kB\", store = \"100 kB\"", "");
        assert_eq!(notes.len(), 1);
        assert!(
            notes[0].starts_with("gateways.hub.store: 100 kB once a round trip of 520 ms")
                && notes[0].ends_with("receive_buffer = \"25 kB\" and store = \"650 kB\" fills it"),
            "{}",
            notes[0]
        );
        let (notes, _) = run("receive_buffer = \"20 kB\", store = \"1 MB\"", "");
        assert!(
            notes[0].starts_with(
                "gateways.hub.receive_buffer: 20 kB once a round trip of 20 ms is 8.00 Mbit/s"
            ),
            "{}",
            notes[0]
        );
    }

    #[test]
    fn without_window_scaling_only_the_store_can_grow() {
        let (notes, slow) = run("", "window_scaling = false");
        assert!(
            notes[0].ends_with("store = \"650 kB\" fills it"),
            "{}",
            notes[0]
        );
        let (notes, fast) = run("store = \"650 kB\"", "window_scaling = false");
        assert_eq!(notes, [""; 0]);
        assert!(fast > 5.0 * slow, "{slow} {fast}");
    }
}
