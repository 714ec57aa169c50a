//! What the kernel says of its connections while they last: TCP_INFO, at intervals.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bentpipe_tcp::Connection;
use bentpipe_types::{Series, Span, Time};
use netlink_packet_sock_diag::inet::nlas::TcpInfo;

use super::host::Host;
use super::netlink::Netlink;
use crate::Clock;

/// A flow's sender: its host's place in the list of hosts, and where it is there.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub(crate) host: usize,
    pub(crate) local: SocketAddr,
}

/// What was seen of one flow's sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    samples: Vec<(Time, Sample)>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    congestion_window: f64,
    slow_start_threshold: Option<f64>,
    smoothed_rtt_s: f64,
    minimum_rtt_s: f64,
    in_flight: f64,
    sent: f64,
    acknowledged: f64,
    segments_sent: u64,
    segments_retransmitted: u64,
}

/// No threshold: the kernel's TCP_INFINITE_SSTHRESH.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

impl Sample {
    fn ours(now: Time, connection: &Connection) -> Self {
        let info = connection.info(now);
        let mss = f64::from(info.send_mss);
        let statistics = connection.statistics();
        Self {
            congestion_window: info.congestion_window as f64 * mss,
            slow_start_threshold: (info.slow_start_threshold).map(|segments| segments as f64 * mss),
            smoothed_rtt_s: info.rtt.map_or(0.0, Span::as_secs_f64),
            minimum_rtt_s: info.minimum_rtt.map_or(0.0, Span::as_secs_f64),
            in_flight: connection.in_flight() as f64,
            sent: connection.sent_offset() as f64,
            acknowledged: info.bytes_acknowledged as f64,
            segments_sent: statistics.segments_sent,
            segments_retransmitted: statistics.segments_retransmitted,
        }
    }

    fn new(info: &TcpInfo) -> Self {
        let mss = f64::from(info.snd_mss);
        let threshold = info.snd_ssthresh;
        Self {
            congestion_window: f64::from(info.snd_cwnd) * mss,
            slow_start_threshold: (threshold < NO_THRESHOLD).then(|| f64::from(threshold) * mss),
            smoothed_rtt_s: f64::from(info.rtt) / 1e6,
            minimum_rtt_s: f64::from(info.min_rtt) / 1e6,
            // RFC 6675's pipe, as tcp_packets_in_flight() has it.
            in_flight: (f64::from(info.unacked) + f64::from(info.retrans)
                - f64::from(info.sacked)
                - f64::from(info.lost))
            .max(0.0)
                * mss,
            sent: info.bytes_sent.saturating_sub(info.bytes_retrans) as f64,
            acknowledged: info.bytes_acked.saturating_sub(1) as f64, // its SYN is counted
            segments_sent: u64::from(info.data_segs_out),
            segments_retransmitted: u64::from(info.total_retrans),
        }
    }
}

impl Seen {
    /// Notes how a connection of ours stands.
    pub(crate) fn note(&mut self, now: Time, connection: &Connection) {
        self.samples.push((now, Sample::ours(now, connection)));
    }

    /// Counts time from `start` on.
    pub(crate) fn shift(&mut self, start: Time) {
        for (at, _) in &mut self.samples {
            *at = Time::ZERO + at.since(start);
        }
    }

    /// Segments with payload sent, and those of them that were sent again.
    pub(crate) fn segments(&self) -> Option<(u64, u64)> {
        let (_, last) = self.samples.last()?;
        Some((last.segments_sent, last.segments_retransmitted))
    }

    /// Round-trip times in milliseconds: the shortest, which the kernel keeps; mean, 95th percentile
    /// and maximum of the smoothed one, as it was when it was looked at.
    pub(crate) fn rtt_ms(&self) -> [Option<f64>; 4] {
        let rtts = self.samples.iter().map(|(_, sample)| sample.smoothed_rtt_s);
        let mut rtts: Vec<f64> = rtts.filter(|rtt| *rtt > 0.0).map(|rtt| rtt * 1e3).collect();
        rtts.sort_by(f64::total_cmp);
        let Some(last) = rtts.len().checked_sub(1) else {
            return [None; 4];
        };
        let mean = rtts.iter().sum::<f64>() / rtts.len() as f64;
        let p95 = rtts[(0.95 * last as f64).round() as usize];
        let minimum = self.samples.last().map(|(_, s)| s.minimum_rtt_s * 1e3);
        [minimum, Some(mean), Some(p95), Some(rtts[last])]
    }

    /// The series, named as those of a simulated flow.
    pub(crate) fn series(&self, flow: &str) -> Vec<Series> {
        type Get = fn(&Sample) -> Option<f64>;
        let columns: [(&str, &'static str, Get); 6] = [
            ("congestion_window", "B", |s| Some(s.congestion_window)),
            ("slow_start_threshold", "B", |s| s.slow_start_threshold),
            ("in_flight", "B", |s| Some(s.in_flight)),
            ("sent", "B", |s| Some(s.sent)),
            ("acknowledged", "B", |s| Some(s.acknowledged)),
            ("smoothed_rtt", "s", |s| {
                (s.smoothed_rtt_s > 0.0).then_some(s.smoothed_rtt_s)
            }),
        ];
        columns
            .into_iter()
            .map(|(name, unit, get)| {
                let points = self.samples.iter();
                let points = points.filter_map(|(at, sample)| Some((at.as_nanos(), get(sample)?)));
                let (times_ns, values) = points.unzip();
                Series {
                    name: format!("{flow}.{name}"),
                    unit,
                    times_ns,
                    values,
                }
            })
            .collect()
    }
}

/// Looks at intervals until told to stop, and once more then.
#[allow(clippy::disallowed_methods, reason = "the world outside has a clock")]
pub(crate) fn watch(
    hosts: &[Host],
    watched: &[Watched],
    clock: Clock,
    interval: Span,
    stop: &AtomicBool,
) -> io::Result<Vec<Seen>> {
    let mut seen = vec![Seen::default(); watched.len()];
    // By host, and there by the sender's own end.
    let mut flows: BTreeMap<usize, BTreeMap<SocketAddr, usize>> = BTreeMap::new();
    for (index, flow) in watched.iter().enumerate() {
        let of_host = flows.entry(flow.host).or_default();
        of_host.insert(flow.local, index);
    }
    let mut sockets = Vec::new();
    for (place, flows) in flows {
        let host = &hosts[place];
        let netlink = host.space.enter(Netlink::connections)??;
        sockets.push((netlink, host.address.is_ipv6(), flows));
    }
    loop {
        let last = stop.load(Ordering::Acquire);
        let now = clock.now();
        for (netlink, is_v6, flows) in &mut sockets {
            netlink.each_connection(*is_v6, |local, info| {
                // A listener has the address of its host, too, but not a sender's port.
                if let Some(index) = flows.get(&local) {
                    seen[*index].samples.push((now, Sample::new(info)));
                }
            })?;
        }
        if last {
            return Ok(seen);
        }
        // In steps, so that the end need not be waited for.
        let next = now + interval;
        loop {
            let left = Duration::from_nanos(clock.until(next).as_nanos());
            if left.is_zero() || stop.load(Ordering::Acquire) {
                break;
            }
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
    }
}

/// Counters of a host's namespace (`TcpExt` of /proc/net/netstat), by name; 0 for one that is not
/// there.
pub(crate) fn counter(host: &Host, names: &[&str]) -> io::Result<u64> {
    let text = host
        .space
        .enter(|| std::fs::read_to_string("/proc/thread-self/net/netstat"))??;
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (Some(header), Some(values)) = (lines.next(), lines.next()) else {
        return Ok(0);
    };
    let pairs = header.split(' ').zip(values.split(' '));
    let of_name = pairs.filter(|(name, _)| names.contains(name));
    Ok(of_name
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum())
}
