//! Who takes a host's device down and up again has its routes again: the kernel forgets them when it
//! goes down, and a user's own network would be set up again by whoever set it up.

use std::io;

use bentpipe_types::Span;
use nix::sys::eventfd::EventFd;

use super::host::Host;
use crate::netlink::Netlink;
use crate::poller::{Poller, sleep};

/// The number by which the end is told.
const END: u64 = u64::MAX;

/// Routes are tried so often, so far apart.
const ATTEMPTS: u32 = 50;
const BETWEEN: Span = Span::from_millis(10);

/// Sets the hosts' routes again whenever their devices come up, until `end` can be read.
pub(crate) fn keep(hosts: &[Host], end: &EventFd) -> io::Result<()> {
    let mut poller = Poller::new()?;
    poller.add_read(end, END)?;
    let mut news = Vec::new();
    for (host, number) in hosts.iter().zip(0..) {
        let netlink = host.space.enter(Netlink::news)??;
        poller.add_read(netlink.descriptor(), number)?;
        news.push((host, netlink, true));
    }
    let mut ready = Vec::new();
    loop {
        poller.wait(Span::from_secs(3600), |number| ready.push(number))?;
        for number in ready.drain(..) {
            if number == END {
                return Ok(());
            }
            let (host, netlink, is_up) = &mut news[number as usize];
            if netlink.came_up(host.interface, is_up) {
                // An IPv6 address is back a moment after its device. (Which may be down again by now;
                // then it comes up again.)
                for _ in 0..ATTEMPTS {
                    if host.space.enter(|| host.set_routes())?.is_ok() {
                        break;
                    }
                    sleep(BETWEEN);
                }
            }
        }
    }
}
