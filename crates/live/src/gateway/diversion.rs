//! How the kernel comes to give a process what it forwards between two groups of interfaces, and how it
//! stops.
//!
//! Each side has a TUN device, a routing table whose only routes lead there, and two rules for each of its
//! interfaces:
//!
//! ```text
//! 20001: from all iif eth0 lookup main suppress_ifgroup B     what goes elsewhere goes there
//! 20002: from all iif eth0 lookup A                           the rest goes to the device
//! ```
//!
//! B is the group of the other side's interfaces: what the main table would send there is not sent, but
//! looked up in the second rule's table. So what is for the machine itself (the local table comes before),
//! what goes back to where it came from, and what goes out at a third interface is the kernel's as before.
//! What the machine itself says of a packet that was too long to go on, or that has nowhere to go, is for whoever had sent it,
//! which is a gateway in a host's name, or in its own, as often as that host. So a gateway hears it first, by one rule more, at
//! either device:
//!
//! ```text
//! 20001: from all iif lo ipproto icmp dport 768-783 lookup A      type 3; for IPv6, types 1 and 2
//! ```
//!
//! What the process gives a device comes in there, finds no such rule, and is routed by the main table.
//!
//! A device is there as long as its process, and its routes as long as the device. What is left of a process
//! that was killed are rules that find nothing, and packets go on to the main table: fail to wire.
//!
//! Rules know interfaces by name, and find one that is there again (a modem that has dialled anew, a cable that
//! was plugged in again); its group has gone with the one before. [`Diversion::keep`] puts it back.

use std::fs;
use std::io;

use crate::Tun;
use crate::netlink::Netlink;
use crate::netlink::forwarding::{Interface, LOOPBACK, MAIN, Rule, UNDELIVERED};

/// Whose rules and routes these are, in the kernel's accounts (`RTPROT_`...): no number that anybody has in
/// iproute2's `rt_protos`.
const PROTOCOL: u8 = 190;

/// Behind the local table's rule (0), before the main one's (32766).
const PRIORITY: u32 = 20_001;

/// Tables and groups are numbered by the device's number, with this mark.
const MARK: u32 = 0x4200_0000;
const NUMBER: u32 = 0x00ff_ffff;

/// In the place of an interface's number, which is at least 1: there is none.
const GONE: u32 = 0;

/// What the devices are called.
const NAMES: &str = "bentpipe%d";
const NAME: &str = "bentpipe";

/// The interfaces that one end of the network is behind, and the device beside them.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) interfaces: Vec<Interface>,
    /// The device's name, and its number.
    pub(super) device: String,
    index: u32,
}

impl Beside {
    /// The number of its table, and of its interfaces' group.
    fn number(&self) -> u32 {
        MARK | self.index & NUMBER
    }
}

/// Packets between two sides are diverted, while this lives.
#[derive(Debug)]
pub(super) struct Diversion {
    netlink: Netlink,
    news: Netlink,
    pub(super) sides: [Beside; 2],
    /// The longest packet that the devices take.
    longest: u32,
    /// Interfaces of which somebody was told that they are down.
    down: Vec<String>,
    /// What is between the sides has segments of its own.
    ends_connections: bool,
}

/// What processes that were killed have left, or would.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Leftovers {
    /// Rules that find nothing.
    pub rules: usize,
    /// Interfaces in groups that nobody asks for.
    pub groups: usize,
}

/// Whether the process is alive that a table or a group belongs to; none of those that are nobody's.
fn is_alive(number: u32, interfaces: &[Interface]) -> Option<bool> {
    if number & !NUMBER != MARK {
        return None;
    }
    Some(interfaces.iter().any(|interface| {
        interface.index & NUMBER == number & NUMBER && interface.name.starts_with(NAME)
    }))
}

/// Removes what killed processes have left behind, in the network namespace of the calling thread.
///
/// # Errors
/// Without the right to.
pub fn remove_leftovers() -> io::Result<Leftovers> {
    let mut netlink = Netlink::routes()?;
    let interfaces = netlink.interfaces()?;
    let rules = netlink.remove_rules(PROTOCOL, |rule| {
        let number = rule.suppressed.unwrap_or(rule.table);
        is_alive(number, &interfaces) == Some(false)
    })?;
    let mut groups = 0;
    for interface in &interfaces {
        if is_alive(interface.group, &interfaces) == Some(false) {
            netlink.set_group(interface.index, 0)?;
            groups += 1;
        }
    }
    Ok(Leftovers { rules, groups })
}

/// The interfaces of these names, and what keeps a side from having them: a line, which begins with the name.
pub(super) fn interfaces(
    names: &[&[String]; 2],
) -> io::Result<Result<[Vec<Interface>; 2], String>> {
    let all = Netlink::routes()?.interfaces()?;
    let mut found = [Vec::new(), Vec::new()];
    for (side, names) in found.iter_mut().zip(names) {
        for name in *names {
            let Some(interface) = all.iter().find(|interface| interface.name == *name) else {
                let known: Vec<&str> = all
                    .iter()
                    .map(|interface| interface.name.as_str())
                    .collect();
                let known = known.join(", ");
                return Ok(Err(format!(
                    "no interface is \"{name}\"; this machine has {known}"
                )));
            };
            side.push(interface.clone());
        }
    }
    for (at, interface) in found.iter().flatten().enumerate() {
        let name = &interface.name;
        if found
            .iter()
            .flatten()
            .skip(at + 1)
            .any(|other| other.index == interface.index)
        {
            return Ok(Err(format!("{name}: given twice")));
        }
        match (interface.group, is_alive(interface.group, &all)) {
            (0, _) | (_, Some(false)) => {}
            (_, Some(true)) => {
                return Ok(Err(format!("{name}: another bentpipe-gateway has it")));
            }
            (group, None) => {
                return Ok(Err(format!(
                    "{name}: it is in the interface group {group}, and needs one of its own; `ip link set {name} group default` takes it out"
                )));
            }
        }
    }
    Ok(Ok(found))
}

impl Diversion {
    /// Opens the devices, sets them up, and diverts; `errors`: ICMP errors of the machine's own, too.
    pub(super) fn start(sides: [Vec<Interface>; 2], errors: bool) -> io::Result<(Self, [Tun; 2])> {
        let longest = sides.iter().flatten().map(|interface| interface.mtu).max();
        // What is too long for where it goes, the kernel says there, of its own address.
        let mtu = longest
            .and_then(|mtu| u16::try_from(mtu).ok())
            .unwrap_or(u16::MAX);
        // From before anything is done: nothing that happens meanwhile is missed.
        let news = Netlink::news()?;
        let mut netlink = Netlink::routes()?;
        let [first, second] = sides;
        let (first, first_tun) = open(&mut netlink, first, mtu)?;
        let (second, second_tun) = open(&mut netlink, second, mtu)?;
        let mut diversion = Self {
            netlink,
            news,
            sides: [first, second],
            longest: mtu.into(),
            down: Vec::new(),
            ends_connections: errors,
        };
        diversion.divert(errors)?;
        Ok((diversion, [first_tun, second_tun]))
    }

    fn divert(&mut self, errors: bool) -> io::Result<()> {
        for side in &self.sides {
            self.netlink
                .everything(side.number(), side.index, PROTOCOL)?;
            for interface in &side.interfaces {
                self.netlink.set_group(interface.index, side.number())?;
            }
        }
        for (at, side) in self.sides.iter().enumerate() {
            let other = self.sides[1 - at].number();
            for interface in &side.interfaces {
                let elsewhere = Rule {
                    priority: PRIORITY,
                    interface: interface.name.clone(),
                    messages: None,
                    table: MAIN,
                    suppressed: Some(other),
                };
                let here = Rule {
                    priority: PRIORITY + 1,
                    interface: interface.name.clone(),
                    messages: None,
                    table: side.number(),
                    suppressed: None,
                };
                self.netlink.add_rule(&elsewhere, PROTOCOL)?;
                self.netlink.add_rule(&here, PROTOCOL)?;
            }
        }
        if errors {
            let own = Rule {
                priority: PRIORITY,
                interface: LOOPBACK.to_owned(),
                messages: Some(UNDELIVERED),
                table: self.sides[0].number(),
                suppressed: None,
            };
            self.netlink.add_rule(&own, PROTOCOL)?;
        }
        Ok(())
    }

    /// Sees to it that interfaces which are there again, others by the same name, are in their side's group:
    /// without, what is for them would not be diverted, and what comes from them would. Returns what somebody
    /// should know.
    pub(super) fn keep(&mut self) -> Vec<String> {
        if !self.news.any_news() {
            return Vec::new();
        }
        // While others set them up, interfaces come and go between a question and the next: there are news of
        // that, too.
        let Ok(all) = self.netlink.interfaces() else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for side in &mut self.sides {
            let number = side.number();
            lines.extend(keep_device(&mut self.netlink, side, &all));
            for known in &mut side.interfaces {
                let name = &known.name;
                let Some(found) = all.iter().find(|one| one.name == *name) else {
                    if known.index != GONE {
                        lines.push(format!("{name} is gone"));
                        known.index = GONE;
                    }
                    continue;
                };
                if found.group != number {
                    if self.netlink.set_group(found.index, number).is_err() {
                        continue;
                    }
                    lines.push(if found.index == known.index {
                        format!(
                            "{name} was put into another interface group, and is back in its own"
                        )
                    } else {
                        format!("{name} is there again")
                    });
                }
                if found.mtu != known.mtu {
                    let (had, has) = (known.mtu, found.mtu);
                    let effect = if self.ends_connections {
                        ": connections begin with that once bentpipe-gateway is started again"
                            .to_owned()
                    } else if has > self.longest {
                        format!(
                            ": packets of more than {} bytes pass once bentpipe-gateway is started again",
                            self.longest
                        )
                    } else {
                        String::new()
                    };
                    lines.push(format!(
                        "{name} has an MTU of {has} now, and had {had}{effect}"
                    ));
                }
                // (One that is made anew comes up when whoever made it has set it up: nobody was told that it was down.)
                let was_told = self.down.iter().position(|down| down == name);
                if let Some(at) = was_told.filter(|_| found.up) {
                    self.down.swap_remove(at);
                    lines.push(format!(
                        "{name} is up again; its routes went when it went down, if nobody has set them again"
                    ));
                } else if known.up && !found.up && found.index == known.index {
                    self.down.push(name.clone());
                    lines.push(format!("{name} is down"));
                }
                (known.index, known.mtu, known.up) = (found.index, found.mtu, found.up);
            }
        }
        lines
    }

    /// A device that somebody has deleted, and without which nothing goes on.
    pub(super) fn deleted(&mut self) -> Option<&str> {
        let all = self.netlink.interfaces().ok()?;
        let is_there = |side: &&Beside| all.iter().any(|one| one.index == side.index);
        let gone = self.sides.iter().find(|side| !is_there(side));
        gone.map(|side| side.device.as_str())
    }

    /// The kernel forwards by itself again.
    pub(super) fn end(&mut self) -> io::Result<()> {
        let ours = self.sides.each_ref().map(Beside::number);
        let removed = self.netlink.remove_rules(PROTOCOL, |rule| {
            ours.contains(&rule.suppressed.unwrap_or(rule.table))
        });
        let now = self.netlink.interfaces()?;
        for interface in now
            .iter()
            .filter(|interface| ours.contains(&interface.group))
        {
            self.netlink.set_group(interface.index, 0)?;
        }
        removed.map(drop)
    }
}

impl Drop for Diversion {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Sees to it that a side's device is up, and its table's routes lead there: these go when it is taken down, and one direction of what
/// passes would be diverted, and the other not.
fn keep_device(netlink: &mut Netlink, side: &Beside, all: &[Interface]) -> Option<String> {
    let device = all.iter().find(|one| one.index == side.index)?;
    let was_down = !device.up;
    if was_down {
        netlink.up(side.index).ok()?;
    }
    netlink
        .everything(side.number(), side.index, PROTOCOL)
        .ok()?;
    was_down.then(|| format!("{} was taken down, and is up again", side.device))
}

fn open(netlink: &mut Netlink, interfaces: Vec<Interface>, mtu: u16) -> io::Result<(Beside, Tun)> {
    let (tun, device) = Tun::open_bare(NAMES, mtu)?;
    let index = nix::net::if_::if_nametoindex(device.as_str())?;
    let set = |version: &str, parameter: &str, value: &str| {
        let path = format!("/proc/sys/net/{version}/conf/{device}/{parameter}");
        // A container may be able to read these alone, and have what is wanted.
        if fs::read_to_string(&path).is_ok_and(|found| found.trim() == value) {
            return Ok(());
        }
        fs::write(&path, value)
            .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
    };
    // It has no addresses, and asks nobody for any; a kernel without IPv6 has none of these.
    for (parameter, value) in [
        ("disable_ipv6", "0"),
        ("addr_gen_mode", "1"),
        ("accept_ra", "0"),
        ("router_solicitations", "0"),
    ] {
        let _ = set("ipv6", parameter, value);
    }
    set("ipv4", "forwarding", "1")?;
    // Here packets come in whose sources are elsewhere. The stricter of this and `all` counts, of 0, 2, 1:
    // but 2 is more than 1 to the kernel, which takes the larger (fib_validate_source).
    let everywhere =
        fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter").unwrap_or_default();
    let filter = if everywhere.trim() == "0" { "0" } else { "2" };
    set("ipv4", "rp_filter", filter)?;
    // What the machine itself has said comes back here.
    set("ipv4", "accept_local", "1")?;
    netlink.queue_length(index, QUEUE)?;
    netlink.up(index)?;
    let beside = Beside {
        interfaces,
        device,
        index,
    };
    Ok((beside, tun))
}

/// Packets from the kernel that wait to be read.
const QUEUE: u32 = 10_000;
