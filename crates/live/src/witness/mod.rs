//! Linux's TCP over one of our links, in real time: a witness for the same network simulated.
//!
//! Two network namespaces, each with a TUN device; between the devices, a link of `bentpipe-link`.
//! The kernel's sender writes without end, the kernel's receiver notes how much has come by when.

mod ends;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread;

use bentpipe_link::{Counters, DropTail, Ends, ErrorModel, Limit, Settings};
use bentpipe_sim::{LinkSettings, Network, NetworkBuilder};
use bentpipe_types::{BitRate, RandomStream, Span, Time};
use serde::Serialize;

use crate::engine::{Lateness, Prefix};
use crate::poller;
use crate::{Capture, Clock, Device, Engine, Namespace, Recorder, Tun, TunSettings};

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const PORT: u16 = 47_000;

/// How long after the sender's connection the one the other way is opened, where there is one.
const UPLOAD_AFTER: Span = Span::from_secs(1);

/// Headers, and a little more.
const SNAP_LENGTH: u32 = 100;

/// The network, and what is sent over it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The kernel's congestion control, by its name: `reno`, `cubic`, `bbr`.
    pub congestion_control: String,
    /// Of the link, towards the receiver.
    pub rate: BitRate,
    /// Of the link, back.
    pub return_rate: BitRate,
    /// Each packet towards the receiver is lost with this probability.
    pub loss: f64,
    /// Of the losses.
    pub seed: u64,
    /// The kernel's `tcp_rmem` and `tcp_wmem`: three numbers each.
    pub buffers: [String; 2],
    /// Of the link, each way.
    pub delay: Span,
    /// Of the link's drop-tail queue towards the receiver; the packet being transmitted does not count.
    pub queue_packets: u64,
    /// Of its queue back.
    pub return_queue_packets: u64,
    /// Of the devices.
    pub mtu: u16,
    /// From the opening on.
    pub duration: Span,
    /// The receiver sends, too, without end: over a connection of its own, opened a second later.
    pub upload: bool,
    /// Between the records.
    pub interval: Span,
    /// Captures of both devices go there: `sender.pcapng`, `receiver.pcapng`.
    pub capture: Option<PathBuf>,
}

/// Buffers so large that they never limit: what is judged is congestion control.
pub const LIMITLESS: &str = "4096 16777216 67108864";

/// The kernel's settings, but for the congestion control and the buffers.
pub const PARAMETERS: [(&str, &str); 5] = [
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_window_scaling", "1"),
    ("net.ipv4.tcp_ecn", "0"),
];

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Which kernel.
    pub kernel: String,
    /// The kernel's congestion control.
    pub congestion_control: String,
    /// Its parameters, as they were.
    pub parameters: Vec<(String, String)>,
    /// In bit/s, towards the receiver.
    pub rate_bps: u64,
    /// In bit/s, back.
    pub return_rate_bps: u64,
    /// The probability of a loss, towards the receiver.
    pub loss: f64,
    /// One way, in seconds.
    pub delay_s: f64,
    /// What may wait, towards the receiver.
    pub queue_packets: u64,
    /// What may wait, back.
    pub return_queue_packets: u64,
    /// In bytes.
    pub mtu: u16,
    /// Between the records, in seconds.
    pub interval_s: f64,
    /// Bytes that the receiver's application had read by each interval's end; time 0 is when the
    /// sender opened the connection.
    pub received: Vec<u64>,
    /// The same the other way, where something is sent there.
    pub uploaded: Vec<u64>,
    /// Packets that the queue towards the receiver dropped in the time that `received` is of.
    pub dropped: u64,
    /// Packets that the queue back dropped in that time.
    pub return_dropped: u64,
    /// Packets that the link towards the receiver lost in that time.
    pub lost: u64,
    /// The most that waited in it.
    pub queue_max_packets: u64,
    /// How late packets left the link, in microseconds: half of them, 99 of 100, the latest.
    pub lateness_us: [f64; 3],
}

/// Lets the kernel's TCP send over the link.
///
/// # Errors
/// When the machine refuses something, or the ends do not come together.
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
            // The queue that counts is the link's.
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
    let way = |address, port, from: usize, to: usize| -> io::Result<Way<'_>> {
        let to_end = &spaces[to];
        let address = SocketAddr::new(IpAddr::V4(address), port);
        let listener = to_end.enter(|| ends::listen(address))??;
        Ok(Way {
            ends: [&spaces[from], to_end],
            address,
            listener,
            opened: OnceLock::new(),
        })
    };
    let there = way(RECEIVER, PORT, 0, 1)?;
    let back = way(SENDER, PORT + 1, 1, 0)?;
    let mut counted = None;
    let (driven, passed) = thread::scope(|scope| {
        let mut running = there.start(scope, request, clock, Span::ZERO);
        if request.upload {
            running.extend(back.start(scope, request, clock, UPLOAD_AFTER));
        }
        let limit = request.duration + request.delay * 20 + Span::from_secs(20);
        let driven = engine.run(clock, limit, |network, now| {
            // Not when the sender ends: the kernel's timer of 24 s that its last write may wait for comes up to 2 s late.
            let opened = there.opened.get();
            if counted.is_none() && opened.is_some_and(|at| now >= *at + request.duration) {
                counted = Some(counters(network));
            }
            running.iter().all(thread::ScopedJoinHandle::is_finished)
        });
        let join = |end: Running<'_>| {
            let result = end.join();
            result.unwrap_or_else(|_| Err(io::Error::other("an end panicked")))
        };
        let passed: io::Result<Vec<ends::Progress>> = running.into_iter().map(join).collect();
        (driven, passed)
    });
    driven?;
    let passed = passed?;
    let lateness = engine.lateness().clone();
    engine.network_mut().finish();
    let mut network = engine.into_network();
    let counted = counted.unwrap_or_else(|| counters(&mut network));
    Ok(report(request, parameters, &counted, &lateness, &passed))
}

/// The link between the two devices, in real time.
fn engine(
    request: &Request,
    mut open: impl FnMut(usize, &str, Ipv4Addr) -> io::Result<Box<dyn Device>>,
) -> io::Result<Engine> {
    let way = |rate, queue_packets| Settings {
        rate,
        delay: request.delay,
        queue: DropTail {
            limit: Limit::Packets(queue_packets),
        }
        .into(),
        errors: Vec::new(),
        redundancy: 1.0,
        ends: Ends::default(),
        changes: None,
        access: None,
    };
    let mut there = way(request.rate, request.queue_packets);
    if request.loss > 0.0 {
        // The stream of a scenario's link that is named "path"
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

/// A connection of the kernel's, and who sends to whom.
struct Way<'a> {
    ends: [&'a Namespace; 2],
    address: SocketAddr,
    listener: TcpListener,
    /// When it began.
    opened: OnceLock<Time>,
}

type Running<'scope> = thread::ScopedJoinHandle<'scope, io::Result<ends::Progress>>;

impl<'a> Way<'a> {
    /// Lets it begin after so long: its sender, and its receiver.
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
        let [from, to] = self.ends;
        let sender = scope.spawn(move || {
            from.enter(|| {
                poller::sleep(clock.until(begin));
                let control = &request.congestion_control;
                let duration = request.duration - after;
                ends::send(self.address, control, clock, duration, &self.opened)
            })?
        });
        let receiver = scope.spawn(move || to.enter(|| ends::receive(&self.listener, clock))?);
        vec![sender, receiver]
    }
}

/// What both ways have counted so far.
fn counters(network: &mut Network) -> [Counters; 2] {
    let directions = network.outcome().directions;
    [directions[0].counters, directions[1].counters]
}

fn report(
    request: &Request,
    parameters: Vec<(String, String)>,
    [there, back]: &[Counters; 2],
    lateness: &Lateness,
    passed: &[ends::Progress],
) -> Report {
    let late = |q| {
        let span = lateness.quantile(q);
        span.map_or(0.0, |span| span.as_nanos() as f64 / 1e3)
    };
    let intervals = request.duration.as_nanos() / request.interval.as_nanos().max(1);
    // What the sender of each way did, then what its receiver did; all counted from when the first was opened.
    let by = |receiver: usize| -> Vec<u64> {
        let Some(received) = passed.get(receiver) else {
            return Vec::new();
        };
        let at = |n: u64| passed[0].start + request.interval * n;
        (1..=intervals).map(|n| received.by(at(n))).collect()
    };
    // The version, without what a distribution appends.
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
