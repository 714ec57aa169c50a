//! A TUN device: the packets that the kernel routes to it are read here, those written here it takes
//! for received.

use std::fs;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use bentpipe_types::Time;
use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN};

use crate::device::{Batch, Device, Sent};

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

/// A TUN device. It exists while this does.
///
/// What the kernel's TCP sends at once is read at once, up to 64 KiB, and cut here into the packets
/// that the kernel would have made of it (IFF_VNET_HDR), which costs it a system call and a walk
/// through its device code for each of them. What is written are single packets, each as it is: packets
/// that were joined again would be acknowledged differently.
pub struct Tun {
    device: SyncDevice,
    /// The longest packet, in bytes.
    mtu: u16,
}

/// Packets that 64 KiB can be cut into: Linux's segments have 48 bytes at least (`tcp_min_snd_mss`).
const PIECES: usize = (1 << 16) / 48 + 1;

/// What is written before a packet: nothing is left to be done with it.
const DONE: [u8; VIRTIO_NET_HDR_LEN] = [0; VIRTIO_NET_HDR_LEN];

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
            .offload(true)
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
        Ok(Self {
            device,
            mtu: settings.mtu,
        })
    }
}

/// A line that says why this process can open no TUN device, if that can be told beforehand; `cure` is what a user
/// without the right to can do.
pub(crate) fn obstacle(cure: &str) -> Option<String> {
    match fs::File::options().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some("there is no /dev/net/tun: load the kernel's module with `modprobe tun`, or give the container the device".to_owned())
        }
        Err(error) => Some(format!("this user may not open /dev/net/tun ({error}): {cure}")),
    }
}

/// A device that no address belongs to, and that is still down: what is routed there by other means is
/// read from it.
impl Tun {
    /// Opens it in the network namespace of the calling thread. Returns its name, too: the kernel puts a
    /// number in the place of `%d`.
    ///
    /// # Errors
    /// Without `/dev/net/tun` or the right to (CAP_NET_ADMIN).
    pub fn open_bare(pattern: &str, mtu: u16) -> io::Result<(Self, String)> {
        let device = DeviceBuilder::new()
            .name(pattern)
            .mtu(mtu)
            .offload(true)
            .enable(false)
            .build_sync()?;
        device.set_nonblocking(true)?;
        let name = device.name()?;
        Ok((Self { device, mtu }, name))
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

/// The device is down, not gone: the kernel says EIO.
fn is_down(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NetworkDown
        || error.raw_os_error() == Some(nix::errno::Errno::EIO as i32)
}

/// A UDP checksum that came out as 0 is sent as its other form: 0 says that there is none (RFC 768).
/// The kernel left that to whoever computes it.
fn mend_udp_checksum(header: &[u8], packet: &mut [u8]) {
    let field = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
    let (needs_checksum, start, offset) = (header[0] & 1 == 1, field(6), field(8));
    if needs_checksum && offset == 6 {
        let checksum = packet.get_mut(start + offset..start + offset + 2);
        if let Some(checksum @ [0, 0]) = checksum {
            checksum.fill(0xff);
        }
    }
}

impl Device for Tun {
    fn receive(&mut self, _now: Time, batch: &mut Batch) -> io::Result<bool> {
        let room = batch.room(PIECES, usize::from(self.mtu));
        let read = self
            .device
            .recv_multiple(room.raw, room.pieces, room.lengths, 0);
        match read {
            Ok(packets) => {
                mend_udp_checksum(&room.raw[..VIRTIO_NET_HDR_LEN], &mut room.pieces[0]);
                batch.filled(packets);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) if is_down(&error) => Ok(false),
            // It was read, and cannot be cut: perhaps since somebody has raised the device's MTU, of
            // which a descriptor is not told.
            Err(error) if error.raw_os_error().is_none() => {
                self.mtu = self.mtu.saturating_mul(2);
                batch.spoilt();
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, _now: Time, packet: &[u8]) -> io::Result<Sent> {
        let parts = [IoSlice::new(&DONE), IoSlice::new(packet)];
        match self.device.send_vectored(&parts) {
            Ok(_) => Ok(Sent::Taken),
            Err(error) if is_down(&error) => Ok(Sent::Down),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::Interrupted
                        | io::ErrorKind::InvalidInput
                        | io::ErrorKind::OutOfMemory
                ) =>
            {
                Ok(Sent::Refused)
            }
            Err(error) => Err(error),
        }
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
