//! The loop that lets a host live behind a TUN device, by the wall clock.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use bentpipe_types::{RandomStream, Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::{Application, Capture, Clock, Host, Impairment, Path, Secret, Transmit, Tun};

/// Packets read before what waits for the time gets its turn.
pub(crate) const BURST: usize = 64;

/// Longer than any packet that a device can have.
pub(crate) const BUFFER: usize = 1 << 16;

/// How long the loop sleeps at most before it asks whether it is to go on.
pub(crate) const NAP: Span = Span::from_millis(20);

/// A TUN device, and what is noted of the packets that pass it.
#[derive(Debug)]
pub struct TunDevice {
    tun: Tun,
    capture: Option<Capture>,
    failed: Option<io::Error>,
    refused: u64,
}

impl TunDevice {
    /// The device, with a capture of what passes it if there is one.
    #[must_use]
    pub fn new(tun: Tun, capture: Option<Capture>) -> Self {
        Self {
            tun,
            capture,
            failed: None,
            refused: 0,
        }
    }

    /// The device itself.
    pub(crate) fn tun(&self) -> &Tun {
        &self.tun
    }

    /// Packets of ours that the kernel did not take.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Reads a packet that the kernel has sent.
    ///
    /// # Errors
    /// Those of the device and the capture, of [`send`](Self::send) too.
    pub fn receive(&mut self, now: Time, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let length = self.tun.receive(buffer)?;
        if let (Some(capture), Some(length)) = (&mut self.capture, length) {
            capture.received(now, &buffer[..length])?;
        }
        Ok(length)
    }

    /// Gives the kernel a packet. An error shows when next something is received.
    pub fn send(&mut self, now: Time, packet: &[u8]) {
        let noted = match &mut self.capture {
            Some(capture) => capture.sent(now, packet),
            None => Ok(()),
        };
        match noted.and_then(|()| self.tun.send(packet)) {
            Ok(true) => {}
            Ok(false) => self.refused += 1,
            Err(error) => self.failed = Some(error),
        }
    }

    /// Ends the capture, if there is one, and the device.
    ///
    /// # Errors
    /// Those of the capture's file.
    pub fn finish(self) -> io::Result<()> {
        self.capture.map_or(Ok(()), Capture::finish)
    }
}

/// What is between a host and the kernel.
#[derive(Debug)]
pub struct Link {
    /// The device.
    pub device: TunDevice,
    /// From the kernel to the host.
    pub inward: Path,
    /// From the host to the kernel.
    pub outward: Path,
}

impl Link {
    /// A link with the same impairment both ways, and luck of its own each way.
    #[must_use]
    pub fn new(device: TunDevice, impairment: Impairment, seed: u64) -> Self {
        let path = |way| Path::new(impairment, RandomStream::new(seed, way, "impairment"));
        Self {
            device,
            inward: path("inward"),
            outward: path("outward"),
        }
    }
}

/// Runs the host until `done` says so, or for `limit`. Returns whether `done` did.
///
/// `done` is asked at least every 20 ms, and may itself use the host.
///
/// # Errors
/// Those of the device and of the capture.
pub fn drive<A: Application>(
    host: &mut Host<A>,
    link: &mut Link,
    clock: Clock,
    limit: Span,
    mut done: impl FnMut(&mut Host<A>, Time, &mut Transmit<'_>) -> bool,
) -> io::Result<bool> {
    let mut buffer = vec![0; BUFFER];
    let end = clock.now() + limit;
    let Link {
        device,
        inward,
        outward,
    } = link;
    loop {
        for _ in 0..BURST {
            let now = clock.now();
            let Some(length) = device.receive(now, &mut buffer)? else {
                break;
            };
            inward.offer(now, &buffer[..length], |packet| {
                host.on_packet(packet, now, &mut |reply| {
                    outward.offer(now, reply, |p| device.send(now, p));
                });
            });
        }
        let now = clock.now();
        inward.arrive(now, |packet| {
            host.on_packet(packet, now, &mut |reply| {
                outward.offer(now, reply, |p| device.send(now, p));
            });
        });
        outward.arrive(now, |packet| device.send(now, packet));
        let mut transmit = |packet: &[u8]| outward.offer(now, packet, |p| device.send(now, p));
        host.on_deadline(now, &mut transmit);
        if done(host, now, &mut transmit) {
            return Ok(true);
        }
        if now >= end {
            return Ok(false);
        }
        let next = [
            host.next_deadline(),
            inward.next_arrival(),
            outward.next_arrival(),
            Some(now + NAP),
        ];
        let next = next.into_iter().flatten().min().unwrap_or(now);
        wait(&[device.tun()], clock.until(next))?;
    }
}

/// Waits until one of the devices can be read, or for `span`.
pub(crate) fn wait(devices: &[&Tun], span: Span) -> io::Result<()> {
    let mut descriptors: Vec<PollFd<'_>> = devices
        .iter()
        .map(|tun| PollFd::new(tun.as_fd(), PollFlags::POLLIN))
        .collect();
    let timeout = TimeSpec::from_duration(Duration::from_nanos(span.as_nanos()));
    match ppoll(&mut descriptors, Some(timeout), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A secret for a host's sequence numbers.
///
/// # Errors
/// Where there is no `/dev/urandom`.
pub fn secret() -> io::Result<Secret> {
    let mut bytes = [[0; 8]; 2];
    let mut source = File::open("/dev/urandom")?;
    for key in &mut bytes {
        source.read_exact(key)?;
    }
    Ok(Secret(bytes.map(u64::from_ne_bytes)))
}
