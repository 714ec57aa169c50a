//! Diverts packets that the kernel forwards between two groups of interfaces to this process, and
//! stops doing so.
//!
//! Each side has a TUN device, a routing table whose only routes lead to it, and two policy routing
//! rules for each of its interfaces:
//!
//! ```text
//! 20001: from all iif eth0 lookup main suppress_ifgroup B     other destinations: as before
//! 20002: from all iif eth0 lookup A                           the rest: to the device
//! ```
//!
//! B is the group of the other side's interfaces. The first rule ignores a route that leads there,
//! so that the second rule's table applies. The following are routed as before.
//!
//! * Packets for the machine itself, since the local table comes first.
//! * Packets that return to their own side.
//! * Packets that leave at a third interface.
//!
//! If a packet is too long or has no route, the machine itself sends an ICMP error to its sender.
//! The sender may be a gateway, which uses a host's address or its own. One more rule at either
//! device therefore delivers these errors to the gateway first:
//!
//! ```text
//! 20001: from all iif lo ipproto icmp dport 768-783 lookup A      type 3; for IPv6, types 1 and 2
//! ```
//!
//! Packets that the process writes to a device enter the kernel there, match no rule, and are
//! routed by the main table.
//!
//! A device lives as long as its process, and its routes as long as the device. If a process is
//! killed, its remaining rules find no route, and packets are routed by the main table: fail to
//! wire.
//!
//! Rules refer to interfaces by name, so that they also apply to an interface that returns (a modem
//! that dialled again, an adapter that was plugged in again). Its group is lost, however.
//! [`Diversion::restore`] restores it.

use std::fs;
use std::io;

use super::connection_zones;
use crate::Tun;
use crate::netlink::Netlink;
use crate::netlink::forwarding::{DELIVERY_ERRORS, Interface, LOOPBACK, MAIN, Rule};

/// Protocol number that marks our rules and routes (`RTPROT_*`). It is not assigned in iproute2's
/// `rt_protos`.
const PROTOCOL: u8 = 190;

/// Priority of the rules: after the local table's (0) and before the main table's (32766).
const PRIORITY: u32 = 20_001;

/// Numbers of tables and groups: this mark with the device's index.
const NUMBER_MARK: u32 = 0x4200_0000;
const INDEX_MASK: u32 = 0x00ff_ffff;

/// Stands for the index of a missing interface; valid ones are at least 1.
const NO_INTERFACE: u32 = 0;

/// Name pattern and prefix of the devices.
const NAME_PATTERN: &str = "bentpipe%d";
const NAME_PREFIX: &str = "bentpipe";

/// The interfaces of one side, and the device that their packets are diverted to.
#[derive(Debug)]
pub(super) struct DivertedSide {
    pub(super) interfaces: Vec<Interface>,
    /// Name and index of the device.
    pub(super) device: String,
    index: u32,
}

impl DivertedSide {
    /// Returns the number of its routing table and interface group.
    fn number(&self) -> u32 {
        NUMBER_MARK | self.index & INDEX_MASK
    }
}

/// Diverts packets between two sides while it exists.
#[derive(Debug)]
pub(super) struct Diversion {
    netlink: Netlink,
    notifications: Netlink,
    pub(super) sides: [DivertedSide; 2],
    /// MTU of the devices.
    max_mtu: u32,
    /// Interfaces that were reported as down.
    reported_down: Vec<String>,
    /// Whether the network between the sides terminates connections, and so sends segments of its
    /// own.
    terminates_connections: bool,
}

/// Rules and groups left behind by killed processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Leftovers {
    /// Number of rules that refer to a missing device.
    pub rules: usize,
    /// Number of interfaces in unused groups.
    pub groups: usize,
}

/// Whether the process that owns a table or group is alive; `None` for numbers that are not ours.
fn is_alive(number: u32, interfaces: &[Interface]) -> Option<bool> {
    if number & !INDEX_MASK != NUMBER_MARK {
        return None;
    }
    Some(interfaces.iter().any(|interface| {
        interface.index & INDEX_MASK == number & INDEX_MASK
            && interface.name.starts_with(NAME_PREFIX)
    }))
}

/// Removes what killed processes have left behind in the network namespace of the calling thread.
///
/// # Errors
/// Without CAP_NET_ADMIN.
pub fn remove_leftovers() -> io::Result<Leftovers> {
    let mut netlink = Netlink::routes()?;
    let interfaces = netlink.interfaces()?;
    let rules = netlink.remove_rules(PROTOCOL, |rule| {
        let number = rule.suppressed.unwrap_or(rule.table);
        is_alive(number, &interfaces) == Some(false)
    })?;
    connection_zones::remove_leftovers(|index| {
        is_alive(NUMBER_MARK | index & INDEX_MASK, &interfaces) == Some(true)
    });
    let mut groups = 0;
    for interface in &interfaces {
        if is_alive(interface.group, &interfaces) == Some(false) {
            netlink.set_group(interface.index, 0)?;
            groups += 1;
        }
    }
    Ok(Leftovers { rules, groups })
}

/// Removes the rules of two routing tables, while their devices may exist.
///
/// # Errors
/// Without CAP_NET_ADMIN.
pub(super) fn remove_rules(tables: [u32; 2]) -> io::Result<()> {
    let mut netlink = Netlink::routes()?;
    netlink.remove_rules(PROTOCOL, |rule| {
        tables.contains(&rule.suppressed.unwrap_or(rule.table))
    })?;
    Ok(())
}

/// Removes the rules of two routing tables, and takes interfaces out of the groups with the same
/// numbers.
///
/// # Errors
/// Without CAP_NET_ADMIN.
pub(super) fn remove_all(tables: [u32; 2]) -> io::Result<()> {
    remove_rules(tables)?;
    let mut netlink = Netlink::routes()?;
    let interfaces = netlink.interfaces()?;
    for interface in (interfaces.iter()).filter(|one| tables.contains(&one.group)) {
        netlink.set_group(interface.index, 0)?;
    }
    connection_zones::remove(tables.map(|table| table & INDEX_MASK));
    Ok(())
}

/// Returns the interfaces with these names, or an error message that begins with the name.
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
                return Ok(Err(format!("{name}: in use by another bentpipe-gateway")));
            }
            (group, None) => {
                return Ok(Err(format!(
                    "{name}: in interface group {group}, but bentpipe-gateway needs to set its group; `ip link set {name} group default` removes it"
                )));
            }
        }
    }
    Ok(Ok(found))
}

impl Diversion {
    /// Opens and configures the devices, and starts to divert; with `errors`, also the machine's
    /// own ICMP errors.
    pub(super) fn start(sides: [Vec<Interface>; 2], errors: bool) -> io::Result<(Self, [Tun; 2])> {
        let max_mtu = sides.iter().flatten().map(|interface| interface.mtu).max();
        // For a packet that is too long for its next hop, the kernel sends an ICMP error from its
        // address there.
        let mtu = max_mtu
            .and_then(|mtu| u16::try_from(mtu).ok())
            .unwrap_or(u16::MAX);
        // Subscribed first, so that no change during the set-up is missed.
        let notifications = Netlink::link_notifications()?;
        let mut netlink = Netlink::routes()?;
        let [first, second] = sides;
        let (first, first_tun) = open(&mut netlink, first, mtu)?;
        let (second, second_tun) = open(&mut netlink, second, mtu)?;
        let mut diversion = Self {
            netlink,
            notifications,
            sides: [first, second],
            max_mtu: mtu.into(),
            reported_down: Vec::new(),
            terminates_connections: errors,
        };
        diversion.divert(errors)?;
        Ok((diversion, [first_tun, second_tun]))
    }

    fn divert(&mut self, errors: bool) -> io::Result<()> {
        for side in &self.sides {
            self.netlink
                .add_default_routes(side.number(), side.index, PROTOCOL)?;
            for interface in &side.interfaces {
                self.netlink.set_group(interface.index, side.number())?;
            }
        }
        for (at, side) in self.sides.iter().enumerate() {
            let other = self.sides[1 - at].number();
            for interface in &side.interfaces {
                let other_destinations = Rule {
                    priority: PRIORITY,
                    interface: interface.name.clone(),
                    messages: None,
                    table: MAIN,
                    suppressed: Some(other),
                };
                let diverted = Rule {
                    priority: PRIORITY + 1,
                    interface: interface.name.clone(),
                    messages: None,
                    table: side.number(),
                    suppressed: None,
                };
                self.netlink.add_rule(&other_destinations, PROTOCOL)?;
                self.netlink.add_rule(&diverted, PROTOCOL)?;
            }
        }
        if errors {
            let own = Rule {
                priority: PRIORITY,
                interface: LOOPBACK.to_owned(),
                messages: Some(DELIVERY_ERRORS),
                table: self.sides[0].number(),
                suppressed: None,
            };
            self.netlink.add_rule(&own, PROTOCOL)?;
        }
        Ok(())
    }

    /// Puts interfaces that have returned under the same name into their side's group. Otherwise
    /// packets from them would be diverted, and packets towards them would not. Returns messages
    /// for the user.
    pub(super) fn restore(&mut self) -> Vec<String> {
        if !self.notifications.any_notification() {
            return Vec::new();
        }
        // Interfaces may change during the query. That produces a further notification.
        let Ok(all) = self.netlink.interfaces() else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for side in &mut self.sides {
            let number = side.number();
            lines.extend(restore_device(&mut self.netlink, side, &all));
            for known in &mut side.interfaces {
                let name = &known.name;
                let Some(found) = all.iter().find(|one| one.name == *name) else {
                    if known.index != NO_INTERFACE {
                        lines.push(format!("{name} is gone"));
                        known.index = NO_INTERFACE;
                    }
                    continue;
                };
                if found.group != number {
                    if self.netlink.set_group(found.index, number).is_err() {
                        continue;
                    }
                    lines.push(if found.index == known.index {
                        format!("{name} was moved to another interface group, and was moved back")
                    } else {
                        format!("{name} has returned")
                    });
                }
                if found.mtu != known.mtu {
                    let (had, has) = (known.mtu, found.mtu);
                    let effect = if self.terminates_connections {
                        ": new connections use it after a restart of bentpipe-gateway".to_owned()
                    } else if has > self.max_mtu {
                        format!(
                            ": packets of more than {} bytes pass after a restart of bentpipe-gateway",
                            self.max_mtu
                        )
                    } else {
                        String::new()
                    };
                    lines.push(format!(
                        "the MTU of {name} changed from {had} to {has}{effect}"
                    ));
                }
                // A new interface comes up when it is configured. Its predecessor was not reported
                // as down, so that there is nothing to report.
                let was_told = self.reported_down.iter().position(|down| down == name);
                if let Some(at) = was_told.filter(|_| found.up) {
                    self.reported_down.swap_remove(at);
                    lines.push(format!(
                        "{name} is up again; its routes were removed when it went down, unless they were restored since"
                    ));
                } else if known.up && !found.up && found.index == known.index {
                    self.reported_down.push(name.clone());
                    lines.push(format!("{name} is down"));
                }
                (known.index, known.mtu, known.up) = (found.index, found.mtu, found.up);
            }
        }
        lines
    }

    /// Returns the name of a device that was deleted, without which packets cannot be diverted.
    pub(super) fn deleted_device(&mut self) -> Option<&str> {
        let all = self.netlink.interfaces().ok()?;
        let is_there = |side: &&DivertedSide| all.iter().any(|one| one.index == side.index);
        let gone = self.sides.iter().find(|side| !is_there(side));
        gone.map(|side| side.device.as_str())
    }

    /// Returns the numbers of the two sides' routing tables.
    pub(super) fn tables(&self) -> [u32; 2] {
        self.sides.each_ref().map(DivertedSide::number)
    }

    /// Returns an index that no other gateway in this namespace has.
    pub(super) fn index(&self) -> u32 {
        self.sides[0].index
    }

    /// Diverts again after the rules were removed.
    ///
    /// # Errors
    /// Without CAP_NET_ADMIN.
    pub(super) fn divert_again(&mut self) -> io::Result<()> {
        self.end()?;
        self.divert(self.terminates_connections)
    }

    /// Stops diverting: the kernel forwards by itself again.
    pub(super) fn end(&mut self) -> io::Result<()> {
        let ours = self.sides.each_ref().map(DivertedSide::number);
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

/// Restores a side's device and the routes of its table. The kernel removes the routes when the
/// device is taken down, after which only one direction would be diverted.
fn restore_device(netlink: &mut Netlink, side: &DivertedSide, all: &[Interface]) -> Option<String> {
    let device = all.iter().find(|one| one.index == side.index)?;
    let was_down = !device.up;
    if was_down {
        netlink.up(side.index).ok()?;
    }
    netlink
        .add_default_routes(side.number(), side.index, PROTOCOL)
        .ok()?;
    was_down.then(|| format!("{} was taken down, and is up again", side.device))
}

fn open(
    netlink: &mut Netlink,
    interfaces: Vec<Interface>,
    mtu: u16,
) -> io::Result<(DivertedSide, Tun)> {
    let (tun, device) = Tun::open_without_addresses(NAME_PATTERN, mtu)?;
    let index = nix::net::if_::if_nametoindex(device.as_str())?;
    let set = |version: &str, parameter: &str, value: &str| {
        let path = format!("/proc/sys/net/{version}/conf/{device}/{parameter}");
        // In a container, the file may be read-only and have the right value.
        if fs::read_to_string(&path).is_ok_and(|found| found.trim() == value) {
            return Ok(());
        }
        fs::write(&path, value)
            .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
    };
    // The device has no addresses and requests none. A kernel without IPv6 lacks these parameters.
    for (parameter, value) in [
        ("disable_ipv6", "0"),
        ("addr_gen_mode", "1"),
        ("accept_ra", "0"),
        ("router_solicitations", "0"),
    ] {
        let _ = set("ipv6", parameter, value);
    }
    set("ipv4", "forwarding", "1")?;
    // Packets from foreign sources enter here. The kernel applies the larger value of this and
    // `all` (fib_validate_source), in which 2 (loose) is larger than 1 (strict).
    let everywhere =
        fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter").unwrap_or_default();
    let filter = if everywhere.trim() == "0" { "0" } else { "2" };
    set("ipv4", "rp_filter", filter)?;
    // ICMP errors from the machine itself come back through the device.
    set("ipv4", "accept_local", "1")?;
    netlink.queue_length(index, QUEUE_PACKETS)?;
    netlink.up(index)?;
    let side = DivertedSide {
        interfaces,
        device,
        index,
    };
    Ok((side, tun))
}

/// Queue length of the devices, in packets.
const QUEUE_PACKETS: u32 = 10_000;
