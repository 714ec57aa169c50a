//! Measures Linux's TCP over a simulated link in real time, for comparison with our TCP.
//!
//! There are two network namespaces, each with a TUN device, and a link of `bentpipe-link` between
//! the devices. The kernel's sender writes continuously; the kernel's receiver records the bytes
//! read over time.

mod kernel_ends;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread;

use bentpipe_link::{Counters, DropTail, ErrorModel, Limit, Settings};
use bentpipe_sim::{LinkSettings, Network, NetworkBuilder};
use bentpipe_types::{BitRate, RandomStream, Span, Time};
use serde::Serialize;

use crate::engine::{Lateness, Prefix};
use crate::poller;
use crate::{Capture, Clock, Device, Engine, Namespace, Recorder, Tun, TunSettings};

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const PORT: u16 = 47_000;

/// Delay of the connection in the opposite direction, if there is one.
const UPLOAD_AFTER: Span = Span::from_secs(1);

/// Capture length: the headers and a little more.
const SNAP_LENGTH: u32 = 100;

/// The network and the traffic.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name of the kernel's congestion control: `reno`, `cubic`, `bbr`.
    pub congestion_control: String,
    /// Rate of the link towards the receiver.
    pub rate: BitRate,
    /// Rate of the link in the return direction.
    pub return_rate: BitRate,
    /// Probability of loss towards the receiver.
    pub loss: f64,
    /// Seed of the losses.
    pub seed: u64,
    /// The kernel's `tcp_rmem` and `tcp_wmem`, three numbers each.
    pub buffers: [String; 2],
    /// One-way delay of the link.
    pub delay: Span,
    /// Limit of the drop-tail queue towards the receiver, without the packet in transmission.
    pub queue_packets: u64,
    /// Limit of the queue in the return direction.
    pub return_queue_packets: u64,
    /// MTU of the devices.
    pub mtu: u16,
    /// Duration from the opening on.
    pub duration: Span,
    /// Whether the receiver sends, too: continuously, over a second connection opened a second
    /// later.
    pub upload: bool,
    /// Interval between the records.
    pub interval: Span,
    /// Directory for captures of both devices: `sender.pcapng`, `receiver.pcapng`.
    pub capture: Option<PathBuf>,
}

/// Buffer sizes that never limit, so that only congestion control does.
pub const UNLIMITED_BUFFERS: &str = "4096 16777216 67108864";

/// The kernel's parameters other than congestion control and buffers.
pub const PARAMETERS: [(&str, &str); 5] = [
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_window_scaling", "1"),
    ("net.ipv4.tcp_ecn", "0"),
];

/// Results of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of the kernel.
    pub kernel: String,
    /// The kernel's congestion control.
    pub congestion_control: String,
    /// Parameters of the kernel.
    pub parameters: Vec<(String, String)>,
    /// Rate in bit/s, towards the receiver.
    pub rate_bps: u64,
    /// Rate in bit/s, in the return direction.
    pub return_rate_bps: u64,
    /// Probability of loss, towards the receiver.
    pub loss: f64,
    /// One-way delay, in seconds.
    pub delay_s: f64,
    /// Queue limit towards the receiver, in packets.
    pub queue_packets: u64,
    /// Queue limit in the return direction, in packets.
    pub return_queue_packets: u64,
    /// MTU, in bytes.
    pub mtu: u16,
    /// Interval between the records, in seconds.
    pub interval_s: f64,
    /// Bytes that the receiver's application had read by the end of each interval. Time 0 is when
    /// the sender opened the connection.
    pub received: Vec<u64>,
    /// Bytes read in the return direction by the end of each interval, if there is such a
    /// connection.
    pub uploaded: Vec<u64>,
    /// Packets dropped by the queue towards the receiver during `received`.
    pub dropped: u64,
    /// Packets dropped by the queue in the return direction during `received`.
    pub return_dropped: u64,
    /// Packets lost by the link towards the receiver during `received`.
    pub lost: u64,
    /// Maximum length of the queue towards the receiver.
    pub queue_max_packets: u64,
    /// How late packets left the link, in microseconds: median, 99th percentile, maximum.
    pub lateness_us: [f64; 3],
}

/// Measures the kernel's TCP over the link.
///
/// # Errors
/// If the machine refuses something, or the connection cannot be established.
pub fn run(request: &Request) -> io::Result<Report> {
    let clock = Clock::start();
    let spaces = [Namespace::new()?, Namespace::new()?];
    let mut parameters = Vec::new();
    let [receive, send] = &request.buffers;
    let wanted: Vec<(&str, &str)> = [
        ("net.ipv4.tcp_rmem", receive.as_str()),
        ("net.ipv4.tcp_wmem", send.as_str()),
    ]
    .into_iter()
    .chain(PARAMETERS)
    .collect();
    for space in &spaces {
        for (name, value) in &wanted {
            space.set(name, value)?;
        }
    }
    for (name, _) in wanted {
        parameters.push((name.to_owned(), spaces[0].parameter(name)?));
    }
    let open = |end: usize, name: &str, address: Ipv4Addr| -> io::Result<Box<dyn Device>> {
        let settings = TunSettings {
            name: name.into(),
            ipv4: Some((address, 24)),
            ipv6: None,
            mtu: request.mtu,
            // Long, so that only the link's queue drops packets.
            queue_packets: 50_000,
        };
        let tun = spaces[end].enter(|| Tun::open(&settings))??;
        let Some(directory) = &request.capture else {
            return Ok(Box::new(tun));
        };
        let path = directory.join(format!("{name}.pcapng"));
        let names = ["from-kernel", "to-kernel"];
        let capture = Capture::create(&path, names, u64::MAX, Some(SNAP_LENGTH))?;
        Ok(Box::new(Recorder::new(tun, capture)))
    };
    let mut engine = engine(request, open)?;
    let way = |address, port, from: usize, to: usize| -> io::Result<Direction<'_>> {
        let to_end = &spaces[to];
        let address = SocketAddr::new(IpAddr::V4(address), port);
        let listener = to_end.enter(|| kernel_ends::listen(address))??;
        Ok(Direction {
            kernel_ends: [&spaces[from], to_end],
            address,
            listener,
            opened: OnceLock::new(),
        })
    };
    let there = way(RECEIVER, PORT, 0, 1)?;
    let back = way(SENDER, PORT + 1, 1, 0)?;
    let mut counted = None;
    let (driven, progress) = thread::scope(|scope| {
        let mut running = there.start(scope, request, clock, Span::ZERO);
        if request.upload {
            running.extend(back.start(scope, request, clock, UPLOAD_AFTER));
        }
        let limit = request.duration + request.delay * 20 + Span::from_secs(20);
        let driven = engine.run(clock, limit, |engine, now| {
            // Counted from the opening, not from the sender's end: a pending write may wait for a
            // kernel timer of 24 s, which expires up to 2 s late.
            let opened = there.opened.get();
            if counted.is_none() && opened.is_some_and(|at| now >= *at + request.duration) {
                counted = Some(counters(engine.network_mut()));
            }
            running.iter().all(thread::ScopedJoinHandle::is_finished)
        });
        let join = |end: Running<'_>| {
            let result = end.join();
            result.unwrap_or_else(|_| Err(io::Error::other("an end panicked")))
        };
        let progress: io::Result<Vec<kernel_ends::Progress>> =
            running.into_iter().map(join).collect();
        (driven, progress)
    });
    driven?;
    let progress = progress?;
    let lateness = engine.lateness().clone();
    engine.network_mut().finish();
    let mut network = engine.into_network();
    let counted = counted.unwrap_or_else(|| counters(&mut network));
    Ok(report(request, parameters, &counted, &lateness, &progress))
}

/// Creates the link between the two devices, in real time.
fn engine(
    request: &Request,
    mut open: impl FnMut(usize, &str, Ipv4Addr) -> io::Result<Box<dyn Device>>,
) -> io::Result<Engine> {
    let way = |rate, queue_packets| {
        Settings::new(
            rate,
            request.delay,
            DropTail {
                limit: Limit::Packets(queue_packets),
            },
        )
    };
    let mut there = way(request.rate, request.queue_packets);
    if request.loss > 0.0 {
        // The random stream that a scenario's link named "path" would have.
        let random = RandomStream::new(request.seed, "path.forward", "errors");
        there.errors = vec![ErrorModel::packet_loss(request.loss, random)];
    }
    let mut builder = NetworkBuilder::new(1);
    let nodes = ["sender", "receiver"].map(|name| builder.attached(name));
    let link = LinkSettings {
        name: "link".to_owned(),
        forward: Some(there),
        backward: Some(way(request.return_rate, request.return_queue_packets)),
    };
    builder.link(nodes[0], nodes[1], link);
    let network = builder.build().map_err(io::Error::other)?;
    let mut engine = Engine::new(network);
    for (end, (name, address)) in [("sender", SENDER), ("receiver", RECEIVER)]
        .into_iter()
        .enumerate()
    {
        let prefix = Prefix::of(address.into());
        engine.attach(nodes[end], open(end, name, address)?, &[prefix]);
    }
    Ok(engine)
}

/// One direction of traffic: a kernel connection and its hosts.
struct Direction<'a> {
    kernel_ends: [&'a Namespace; 2],
    address: SocketAddr,
    listener: TcpListener,
    /// When it was opened.
    opened: OnceLock<Time>,
}

type Running<'scope> = thread::ScopedJoinHandle<'scope, io::Result<kernel_ends::Progress>>;

impl<'a> Direction<'a> {
    /// Starts sender and receiver after a delay.
    fn start<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        request: &'scope Request,
        clock: Clock,
        after: Span,
    ) -> Vec<Running<'scope>>
    where
        'a: 'scope,
    {
        let begin = clock.now() + after;
        let [from, to] = self.kernel_ends;
        let sender = scope.spawn(move || {
            from.enter(|| {
                poller::sleep(clock.until(begin));
                let control = &request.congestion_control;
                let duration = request.duration - after;
                kernel_ends::send(self.address, control, clock, duration, &self.opened)
            })?
        });
        let receiver =
            scope.spawn(move || to.enter(|| kernel_ends::receive(&self.listener, clock))?);
        vec![sender, receiver]
    }
}

/// Returns the counters of both directions.
fn counters(network: &mut Network) -> [Counters; 2] {
    let directions = network.outcome().directions;
    [directions[0].counters, directions[1].counters]
}

fn report(
    request: &Request,
    parameters: Vec<(String, String)>,
    [there, back]: &[Counters; 2],
    lateness: &Lateness,
    progress: &[kernel_ends::Progress],
) -> Report {
    let late = |q| {
        let span = lateness.quantile(q);
        span.map_or(0.0, |span| span.as_nanos() as f64 / 1e3)
    };
    let intervals = request.duration.as_nanos() / request.interval.as_nanos().max(1);
    // The progress of each receiver, counted from the opening of the first connection.
    let by = |receiver: usize| -> Vec<u64> {
        let Some(received) = progress.get(receiver) else {
            return Vec::new();
        };
        let at = |n: u64| progress[0].start + request.interval * n;
        (1..=intervals)
            .map(|n| received.bytes_until(at(n)))
            .collect()
    };
    // The version without the distribution's suffix.
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.split(['-', '+', '\n']).next().unwrap_or_default();
    Report {
        kernel: kernel.to_owned(),
        congestion_control: request.congestion_control.clone(),
        parameters,
        rate_bps: request.rate.bits_per_second(),
        return_rate_bps: request.return_rate.bits_per_second(),
        loss: request.loss,
        delay_s: request.delay.as_secs_f64(),
        queue_packets: request.queue_packets,
        return_queue_packets: request.return_queue_packets,
        mtu: request.mtu,
        interval_s: request.interval.as_secs_f64(),
        received: by(1),
        uploaded: by(3),
        dropped: there.dropped,
        return_dropped: back.dropped,
        lost: there.lost,
        queue_max_packets: there.queue_max_packets,
        lateness_us: [late(0.5), late(0.99), late(1.0)],
    }
}
