//! Interoperability tests between our TCP and the kernel's.
//!
//! Each [`Cell`] has its own network namespace and TUN device. The kernel's end is ordinary sockets
//! inside; ours is a [`LiveHost`](crate::LiveHost) in the network behind the device. Nothing is
//! left behind, and every wait is bounded.

mod cell;
mod data;
mod kernel;
mod matrix;
mod network;
mod ours;
mod plans;
mod tshark;
mod verdict;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bentpipe_types::{IpVersion, Span};

use plans::{PORT, Plans};

use crate::{Capture, Clock, Device, Namespace, Recorder, Tun, TunSettings};

pub use cell::{Cell, Condition, Exchange, Options, Role};
pub use data::Tally;
pub use matrix::{full, quick};
pub use tshark::{Dissection, dissect};
pub use verdict::{Failure, Outcome};

const KERNEL_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const OURS_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const KERNEL_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);
const OURS_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2);
/// Port without a listener.
const NO_PORT: u16 = 47_001;

/// Returns an error message if this machine cannot run the tests.
#[must_use]
pub fn obstacle() -> Option<String> {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) => return Some(format!("cannot create a network namespace: {error}")),
    };
    let settings = TunSettings {
        name: "probe".into(),
        ipv4: None,
        ipv6: None,
        mtu: 1500,
        queue_packets: 10,
    };
    match namespace.enter(|| Tun::open(&settings)) {
        Ok(Ok(_)) => None,
        Ok(Err(error)) | Err(error) => Some(format!("cannot open a TUN device: {error}")),
    }
}

/// Runs one cell, for at most `limit`. `capture` is a file for the device's packets and their
/// maximum number.
///
/// # Errors
/// If the machine refuses something, or one side behaved incorrectly, as the [`Failure`] states.
pub fn play(cell: &Cell, limit: Span, capture: Option<(&Path, u64)>) -> Result<Outcome, Failure> {
    let namespace = Namespace::new()?;
    for (parameter, value) in cell.parameters() {
        namespace.set(parameter, value)?;
    }
    let tun = namespace.enter(|| open(cell))??;
    let device: Box<dyn Device> = match capture {
        None => Box::new(tun),
        Some((path, packets)) => {
            let names = ["from-kernel", tshark::FROM_US];
            let capture = Capture::create(path, names, packets, None)?;
            Box::new(Recorder::new(tun, capture))
        }
    };
    let plans = Plans::of(cell);
    let (kernel_ip, our_ip): (IpAddr, IpAddr) = match cell.version {
        IpVersion::V4 => (KERNEL_V4.into(), OURS_V4.into()),
        IpVersion::V6 => (KERNEL_V6.into(), OURS_V6.into()),
    };
    let port = if cell.exchange == Exchange::Refused {
        NO_PORT
    } else {
        PORT
    };
    let listener = match cell.role {
        Role::Client => {
            let local = SocketAddr::new(kernel_ip, PORT);
            Some(namespace.enter(|| kernel::listen(local, &plans.kernel))??)
        }
        Role::Server => None,
    };
    let reports = ours::Reports::default();
    let between = (our_ip, kernel_ip);
    let mut engine = network::engine(cell, &plans, between, port, &reports, device)?;
    let clock = Clock::start();
    let remote = SocketAddr::new(our_ip, port);
    let gave_up = AtomicBool::new(false);
    let (finished, theirs) = thread::scope(|scope| {
        let kernel = scope.spawn(|| {
            let result = namespace
                .enter(|| kernel_side(cell, listener.as_ref(), remote, &plans))
                .and_then(|result| result);
            gave_up.store(result.is_err(), Ordering::Release);
            result
        });
        let expected = plans.connections as usize;
        let finished = engine.run(clock, limit, |_, _| {
            let over = ours::lock(&reports).len();
            let settled = over >= expected || gave_up.load(Ordering::Acquire);
            kernel.is_finished() && settled
        });
        let theirs = kernel
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the kernel's end panicked")));
        (finished, theirs)
    });
    let elapsed = Span::from_nanos(clock.now().as_nanos());
    engine.network_mut().finish();
    let reports = std::mem::take(&mut *ours::lock(&reports));
    let outcome = Outcome::new(engine, elapsed, &reports);
    let finished = finished?;
    verdict::check_results(cell, finished, &reports, theirs, outcome)
}

fn open(cell: &Cell) -> io::Result<Tun> {
    let version_6 = cell.version == IpVersion::V6;
    Tun::open(&TunSettings {
        name: "bentpipe".into(),
        ipv4: Some((KERNEL_V4, 24)),
        ipv6: version_6.then_some((KERNEL_V6, 64)),
        mtu: cell.mtu,
        // More than any window, so that the device never drops packets by itself.
        queue_packets: 20_000,
    })
}

fn kernel_side(
    cell: &Cell,
    listener: Option<&TcpListener>,
    remote: SocketAddr,
    plans: &Plans,
) -> io::Result<Vec<kernel::Report>> {
    if cell.exchange == Exchange::Refused && listener.is_some() {
        return Ok(Vec::new());
    }
    (0..plans.connections)
        .map(|_| match listener {
            Some(listener) => kernel::accept(listener, &plans.kernel),
            None => kernel::connect(remote, &plans.kernel),
        })
        .collect()
}
