//! A TUN device: the packets that the kernel routes to it are read here, those written here it takes
//! for received.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use bentpipe_types::Time;
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::Device;

/// What a device is to have on the kernel's side.
#[derive(Clone, Debug)]
pub struct TunSettings {
    /// Its name, up to 15 bytes.
    pub name: String,
    /// The kernel's IPv4 address on it, and the length of its subnet's prefix.
    pub ipv4: Option<(Ipv4Addr, u8)>,
    /// The kernel's IPv6 address on it, and the length of its subnet's prefix.
    pub ipv6: Option<(Ipv6Addr, u8)>,
    /// The longest packet, in bytes.
    pub mtu: u16,
    /// Packets from the kernel that wait to be read; beyond them it drops.
    pub queue_packets: u32,
}

/// A TUN device, without offloads: what is read and written are single IP packets. It exists while
/// this does.
pub struct Tun {
    device: SyncDevice,
}

impl Tun {
    /// Opens a device in the network namespace of the calling thread, brings it up, and waits until
    /// its addresses are usable.
    ///
    /// # Errors
    /// Without `/dev/net/tun` or the right to (CAP_NET_ADMIN); when the kernel refuses a setting.
    pub fn open(settings: &TunSettings) -> io::Result<Self> {
        let mut builder = DeviceBuilder::new()
            .name(&settings.name)
            .mtu(settings.mtu)
            .enable(true);
        if let Some((address, prefix)) = settings.ipv4 {
            builder = builder.ipv4(address, prefix, None);
        }
        // IPv6 needs a link with an MTU of 1280 (RFC 8200 section 5); Linux has it off below.
        if let Some((address, prefix)) = settings.ipv6 {
            builder = builder.ipv6(address, prefix);
        }
        let device = builder.build_sync()?;
        // In a user namespace, this old way of asking is refused; netlink's is not.
        match device.set_tx_queue_len(settings.queue_packets) {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
            _ => {}
        }
        device.set_nonblocking(true)?;
        if let Some((address, _)) = settings.ipv6 {
            until_usable(address)?;
        }
        Ok(Self { device })
    }

    /// Reads one packet into `buffer`. `None` when there is none.
    ///
    /// # Errors
    /// Those of the device.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.device.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes one packet. False when the kernel has no room for it or takes it for malformed: it is
    /// lost, as on a link.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn send(&self, packet: &[u8]) -> io::Result<bool> {
        match self.device.send(packet) {
            Ok(_) => Ok(true),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::Interrupted
                        | io::ErrorKind::InvalidInput
                        | io::ErrorKind::OutOfMemory
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// How long the kernel may take to make an address usable: duplicate address detection is a second
/// (RFC 4862 section 5.1), and even without it a worker of the kernel's has to come round.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits until sockets may use an IPv6 address; until then, it is "tentative".
fn until_usable(address: Ipv6Addr) -> io::Result<()> {
    let pause = Duration::from_millis(2);
    let mut left = PATIENCE;
    loop {
        match UdpSocket::bind((address, 0)) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                left = left.checked_sub(pause).ok_or(error)?;
                rest(pause);
            }
            Err(error) => return Err(error),
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "opening a device is no part of a core"
)]
fn rest(span: Duration) {
    std::thread::sleep(span);
}

impl Device for Tun {
    fn receive(&mut self, _now: Time, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        Tun::receive(self, buffer)
    }

    fn send(&mut self, _now: Time, packet: &[u8]) -> io::Result<bool> {
        Tun::send(self, packet)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl std::fmt::Debug for Tun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tun").finish_non_exhaustive()
    }
}
