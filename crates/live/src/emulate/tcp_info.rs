//! Periodic TCP_INFO samples of the kernel's connections.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bentpipe_tcp::Connection;
use bentpipe_types::{Series, Span, Time, rank};
use netlink_packet_sock_diag::inet::nlas::TcpInfo;

use super::host::Host;
use crate::Clock;
use crate::netlink::Netlink;

/// A flow whose sender is a kernel socket.
#[derive(Clone, Debug)]
pub(crate) struct WatchedSender {
    /// Index of its host in the list of hosts.
    pub(crate) host: usize,
    /// First and last port of the opener: the sender's own, or its client's if the sender is a
    /// server.
    pub(crate) ports: (u16, u16),
    /// Address of the client, if the sender is a server.
    pub(crate) client: Option<IpAddr>,
}

/// Samples of one flow's sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct SenderSamples {
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

/// The kernel's TCP_INFINITE_SSTHRESH: no threshold.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

impl Sample {
    fn our_connection(now: Time, connection: &Connection) -> Self {
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
            // The pipe of RFC 6675 section 4, as in tcp_packets_in_flight().
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

impl SenderSamples {
    /// Adds a sample of a connection of our TCP.
    pub(crate) fn add(&mut self, now: Time, connection: &Connection) {
        self.samples
            .push((now, Sample::our_connection(now, connection)));
    }

    /// Returns the number of data segments sent and of retransmissions.
    pub(crate) fn segments(&self) -> Option<(u64, u64)> {
        let (_, last) = self.samples.last()?;
        Some((last.segments_sent, last.segments_retransmitted))
    }

    /// Returns round-trip times in milliseconds: the kernel's minimum, then mean, 95th percentile
    /// and maximum of the sampled smoothed RTT.
    pub(crate) fn rtt_ms(&self) -> [Option<f64>; 4] {
        let rtts = self.samples.iter().map(|(_, sample)| sample.smoothed_rtt_s);
        let mut rtts: Vec<f64> = rtts.filter(|rtt| *rtt > 0.0).map(|rtt| rtt * 1e3).collect();
        rtts.sort_by(f64::total_cmp);
        let Some(last) = rtts.len().checked_sub(1) else {
            return [None; 4];
        };
        let mean = rtts.iter().sum::<f64>() / rtts.len() as f64;
        let p95 = rtts[rank(0.95, rtts.len() as u64) as usize - 1];
        let minimum = self.samples.last().map(|(_, s)| s.minimum_rtt_s * 1e3);
        [minimum, Some(mean), Some(p95), Some(rtts[last])]
    }

    /// Returns the series, named as those of a simulated flow.
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

/// Senders of one host. The key is the first port of a range, with the client's address if the
/// sender is a server; the value is the last port and the sender's index.
#[derive(Debug, Default)]
struct Senders(BTreeMap<(Option<IpAddr>, u16), (u16, usize)>);

impl Senders {
    fn of(&self, local: SocketAddr, remote: SocketAddr) -> Option<usize> {
        let find = |whose: Option<IpAddr>, port: u16| {
            let (first, (last, index)) = self.0.range(..=(whose, port)).next_back()?;
            (first.0 == whose && port <= *last).then_some(*index)
        };
        // Port 0: a listener, which has no remote end.
        let is_open = remote.port() != 0;
        let client = || find(Some(remote.ip()), remote.port());
        find(None, local.port()).or_else(client).filter(|_| is_open)
    }
}

/// Samples at intervals until stopped, and once more then.
#[allow(clippy::disallowed_methods, reason = "the world outside has a clock")]
pub(crate) fn sample_until_stopped(
    hosts: &[Host],
    watched: &[WatchedSender],
    clock: Clock,
    interval: Span,
    stop: &AtomicBool,
) -> io::Result<Vec<SenderSamples>> {
    let mut seen = vec![SenderSamples::default(); watched.len()];
    let mut by_host: BTreeMap<usize, Senders> = BTreeMap::new();
    for (index, flow) in watched.iter().enumerate() {
        let senders = by_host.entry(flow.host).or_default();
        let (first, last) = flow.ports;
        senders.0.insert((flow.client, first), (last, index));
    }
    let mut sockets = Vec::new();
    for (place, senders) in by_host {
        let host = &hosts[place];
        let netlink = host.namespace.enter(Netlink::connections)??;
        sockets.push((netlink, host.address.is_ipv6(), senders));
    }
    // Of several connections of a flow, the latest is sampled, as in a simulation.
    let mut known: BTreeMap<(SocketAddr, SocketAddr), usize> = BTreeMap::new();
    let mut latest: Vec<Option<(usize, Sample)>> = vec![None; watched.len()];
    loop {
        let last = stop.load(Ordering::Acquire);
        let now = clock.now();
        for (netlink, is_v6, senders) in &mut sockets {
            netlink.each_connection(*is_v6, |local, remote, info| {
                let Some(index) = senders.of(local, remote) else {
                    return;
                };
                let number = known.len();
                let number = *known.entry((local, remote)).or_insert(number);
                if latest[index].is_none_or(|(before, _)| before <= number) {
                    latest[index] = Some((number, Sample::new(info)));
                }
            })?;
        }
        for (seen, latest) in seen.iter_mut().zip(&mut latest) {
            if let Some((_, sample)) = latest.take() {
                seen.samples.push((now, sample));
            }
        }
        if last {
            return Ok(seen);
        }
        wait_until(clock, now + interval, stop);
    }
}

/// Waits until `next` or the stop, in steps, so that a stop takes effect soon.
#[allow(clippy::disallowed_methods, reason = "the world outside has a clock")]
pub(crate) fn wait_until(clock: Clock, next: Time, stop: &AtomicBool) {
    loop {
        let left = Duration::from_nanos(clock.until(next).as_nanos());
        if left.is_zero() || stop.load(Ordering::Acquire) {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
}

/// Returns the sum of these counters of a host's namespace (`TcpExt` of /proc/net/netstat); missing
/// ones count as 0.
pub(crate) fn counter(host: &Host, names: &[&str]) -> io::Result<u64> {
    let text = host
        .namespace
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
