//! Restores the routes of hosts whose device was taken down and up again. The kernel removes routes
//! when a device goes down. On a user's own network, the program that set them up would restore
//! them.

use std::io;

use bentpipe_types::Span;
use nix::sys::eventfd::EventFd;

use super::host::Host;
use crate::netlink::Netlink;
use crate::poller::{Poller, sleep};

/// Poller number of the end event.
const END: u64 = u64::MAX;

/// Number of attempts to set routes, and the time between them.
const ATTEMPTS: u32 = 50;
const RETRY_INTERVAL: Span = Span::from_millis(10);

/// Restores the hosts' routes whenever their devices come up, until `end` is readable.
pub(crate) fn restore_routes(hosts: &[Host], end: &EventFd) -> io::Result<()> {
    let mut poller = Poller::new()?;
    poller.add_read(end, END)?;
    let mut notifications = Vec::new();
    for (host, number) in hosts.iter().zip(0..) {
        let netlink = host.namespace.enter(Netlink::link_notifications)??;
        poller.add_read(netlink.descriptor(), number)?;
        notifications.push((host, netlink, true));
    }
    let mut ready = Vec::new();
    loop {
        poller.wait(Span::from_secs(3600), |number| ready.push(number))?;
        for number in ready.drain(..) {
            if number == END {
                return Ok(());
            }
            let (host, netlink, is_up) = &mut notifications[number as usize];
            if netlink.came_up(host.interface, is_up) {
                // An IPv6 address becomes usable some time after its device is up. If the device
                // goes down again meanwhile, the next notification handles it.
                for _ in 0..ATTEMPTS {
                    if host.namespace.enter(|| host.set_routes())?.is_ok() {
                        break;
                    }
                    sleep(RETRY_INTERVAL);
                }
            }
        }
    }
}
