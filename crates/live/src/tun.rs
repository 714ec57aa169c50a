//! A TUN device: packets that the kernel routes to it are read here, and packets written here are
//! received by the kernel.

mod coalescing;
mod fair_reader;
mod sent_sequences;

use std::fs;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use bentpipe_types::Time;
use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN};

use crate::device::{Batch, Device, Lost, Sent};
use coalescing::Coalescer;
use fair_reader::FairReader;

/// Settings of a TUN device.
#[derive(Clone, Debug)]
pub struct TunSettings {
    /// Name, up to 15 bytes.
    pub name: String,
    /// IPv4 address, and the length of its subnet's prefix.
    pub ipv4: Option<(Ipv4Addr, u8)>,
    /// IPv6 address, and the length of its subnet's prefix.
    pub ipv6: Option<(Ipv6Addr, u8)>,
    /// MTU, in bytes.
    pub mtu: u16,
    /// Queue length for packets from the kernel; further ones are dropped.
    pub queue_packets: u32,
}

/// A TUN device that exists as long as this handle.
///
/// Reads use segmentation offload (IFF_VNET_HDR): one read returns up to 64 KiB that the kernel's
/// TCP sent at once. They are split here into the packets that the kernel would have sent. That
/// saves the kernel a system call and a pass through its device code for each packet.
/// [`send`](Device::send) writes single packets; [`queue`](Tun::queue) joins consecutive segments
/// of a flow, for hosts that are not on this machine.
pub struct Tun {
    device: SyncDevice,
    coalescer: Coalescer,
    fair_reader: FairReader,
    /// MTU when the device was opened, in bytes.
    mtu: u16,
}

/// Most packets of a 64 KiB read: Linux's segments have at least 48 bytes (`tcp_min_snd_mss`).
const MAX_SEGMENTS: usize = (1 << 16) / 48 + 1;

/// The virtio header before a written packet: no offload.
const NO_OFFLOAD: [u8; VIRTIO_NET_HDR_LEN] = [0; VIRTIO_NET_HDR_LEN];

impl Tun {
    /// Opens a device in the network namespace of the calling thread, brings it up, and waits until
    /// its addresses are usable.
    ///
    /// # Errors
    /// Without `/dev/net/tun` or CAP_NET_ADMIN, or if the kernel refuses a setting.
    pub fn open(settings: &TunSettings) -> io::Result<Self> {
        let mut builder = DeviceBuilder::new()
            .name(&settings.name)
            .mtu(settings.mtu)
            .offload(true)
            .enable(true);
        if let Some((address, prefix)) = settings.ipv4 {
            builder = builder.ipv4(address, prefix, None);
        }
        // IPv6 needs an MTU of 1280 (RFC 8200 section 5); Linux disables it on links with less.
        if let Some((address, prefix)) = settings.ipv6 {
            builder = builder.ipv6(address, prefix);
        }
        let device = builder.build_sync()?;
        // In a user namespace, this ioctl is refused; netlink permits the same.
        match device.set_tx_queue_len(settings.queue_packets) {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
            _ => {}
        }
        device.set_nonblocking(true)?;
        if let Some((address, _)) = settings.ipv6 {
            wait_until_usable(address)?;
        }
        Ok(Self {
            coalescer: Coalescer::new(device.udp_gso()),
            device,
            fair_reader: FairReader::default(),
            mtu: settings.mtu,
        })
    }
}

/// Returns an error message if this process cannot open a TUN device, as far as that is known in
/// advance. `cure` is advice for a user without the permission.
pub(crate) fn obstacle(cure: &str) -> Option<String> {
    match fs::File::options().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some("there is no /dev/net/tun: load the kernel's module with `modprobe tun`, or give the container the device".to_owned())
        }
        Err(error) => Some(format!("this user cannot open /dev/net/tun ({error}): {cure}")),
    }
}

/// A device without addresses that is not up yet. It receives what routes of the caller lead to it.
impl Tun {
    /// Opens the device in the network namespace of the calling thread. Returns its name, too: the
    /// kernel replaces `%d` by a number.
    ///
    /// # Errors
    /// Without `/dev/net/tun` or CAP_NET_ADMIN.
    pub fn open_without_addresses(pattern: &str, mtu: u16) -> io::Result<(Self, String)> {
        let device = DeviceBuilder::new()
            .name(pattern)
            .mtu(mtu)
            .offload(true)
            .enable(false)
            .build_sync()?;
        device.set_nonblocking(true)?;
        let name = device.name()?;
        let tun = Self {
            coalescer: Coalescer::new(device.udp_gso()),
            device,
            fair_reader: FairReader::default(),
            mtu,
        };
        Ok((tun, name))
    }

    /// Reads the next packets of the flow whose turn it is.
    ///
    /// # Errors
    /// If the device no longer exists.
    pub(crate) fn receive_fairly(&mut self, batch: &mut Batch) -> io::Result<bool> {
        match self.fair_reader.fill(&self.device) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_down(&error) => {}
            filled => filled?,
        }
        let Some(mut read) = self.fair_reader.next() else {
            return Ok(false);
        };
        let mut buffers = batch.buffers(MAX_SEGMENTS, usize::from(self.mtu));
        match fair_reader::divide(&mut read, &mut buffers) {
            Ok(packets) => batch.set_packets(packets),
            // As in `receive`.
            Err(_) => {
                self.mtu = self.mtu.saturating_mul(2);
                batch.mark_unsplit();
            }
        }
        self.fair_reader.give_back(read);
        Ok(true)
    }

    /// Adds a packet to those that [`write_queued`](Self::write_queued) writes.
    pub(crate) fn queue(&mut self, packet: &[u8]) {
        self.coalescer.add(packet);
    }

    /// Writes the queued packets, after `change` has changed each.
    ///
    /// # Errors
    /// If the device no longer exists.
    pub(crate) fn write_queued(&mut self, mut change: impl FnMut(&mut [u8])) -> io::Result<Lost> {
        let (device, mut lost) = (&self.device, Lost::default());
        self.coalescer
            .drain(|offload, packet, count| {
                change(packet);
                match sent(device.send_vectored(&[IoSlice::new(offload), IoSlice::new(packet)]))? {
                    Sent::Taken => {}
                    Sent::Refused => lost.refused += count as u64,
                    Sent::Down => lost.down += count as u64,
                }
                Ok(())
            })
            .map(|()| lost)
    }
}

/// Interprets the result of a write.
fn sent(result: io::Result<usize>) -> io::Result<Sent> {
    match result {
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

/// Time allowed until an address is usable. Duplicate address detection takes a second (RFC 4862
/// section 5.1), and even without it, the kernel makes the address usable in a deferred task.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits until an IPv6 address is no longer tentative, so that sockets can use it.
fn wait_until_usable(address: Ipv6Addr) -> io::Result<()> {
    let pause = Duration::from_millis(2);
    let mut left = ADDRESS_TIMEOUT;
    loop {
        match UdpSocket::bind((address, 0)) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                left = left.checked_sub(pause).ok_or(error)?;
                sleep(pause);
            }
            Err(error) => return Err(error),
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "opening a device is no part of a core"
)]
fn sleep(span: Duration) {
    std::thread::sleep(span);
}

/// Whether an error says that the device is down (EIO) and not removed.
fn is_down(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NetworkDown
        || error.raw_os_error() == Some(nix::errno::Errno::EIO as i32)
}

/// Replaces a computed UDP checksum of 0 by 0xffff, since 0 means none (RFC 768). The kernel leaves
/// this to whatever computes the checksum.
fn replace_zero_udp_checksum(header: &[u8], packet: &mut [u8]) {
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
        let buffers = batch.buffers(MAX_SEGMENTS, usize::from(self.mtu));
        let read = self
            .device
            .recv_multiple(buffers.raw, buffers.segments, buffers.lengths, 0);
        match read {
            Ok(packets) => {
                replace_zero_udp_checksum(
                    &buffers.raw[..VIRTIO_NET_HDR_LEN],
                    &mut buffers.segments[0],
                );
                batch.set_packets(packets);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) if is_down(&error) => Ok(false),
            // The bytes were read but could not be split, possibly since the device's MTU was
            // raised, which the descriptor does not report.
            Err(error) if error.raw_os_error().is_none() => {
                self.mtu = self.mtu.saturating_mul(2);
                batch.mark_unsplit();
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, _now: Time, packet: &[u8]) -> io::Result<Sent> {
        let parts = [IoSlice::new(&NO_OFFLOAD), IoSlice::new(packet)];
        sent(self.device.send_vectored(&parts))
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
