//! Configuration of forwarding: interfaces and their groups, routing tables, rules.

use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};

use super::Netlink;

/// The main routing table.
pub(crate) const MAIN: u32 = RouteHeader::RT_TABLE_MAIN as u32;

/// In rules, the input interface of packets that the machine itself sends.
pub(crate) const LOOPBACK: &str = "lo";

/// First and last value of an ICMP message's type and code, which rules match as a port.
pub(crate) type IcmpMessages = (u16, u16);

/// ICMP messages that report an undelivered packet, for IPv4 and IPv6: "destination unreachable",
/// which includes "fragmentation needed" (RFC 792, RFC 1191 section 4), and "packet too big" (RFC
/// 4443 sections 3.1 and 3.2).
pub(crate) const DELIVERY_ERRORS: [IcmpMessages; 2] = [(3 << 8, 3 << 8 | 15), (1 << 8, 2 << 8)];

/// IANA protocol number.
const ICMP_V6: i32 = 58;

/// A network interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) mtu: u32,
    /// Interface group, which rules can refer to; 0 by default.
    pub(crate) group: u32,
    pub(crate) up: bool,
}

/// A policy routing rule by input interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// Rules with lower numbers are evaluated first.
    pub(crate) priority: u32,
    /// The input interface; [`LOOPBACK`] for packets that the machine itself sends.
    pub(crate) interface: String,
    /// Restricts the rule to these ICMP messages of IPv4 and IPv6.
    pub(crate) messages: Option<[IcmpMessages; 2]>,
    pub(crate) table: u32,
    /// Routes of the table to interfaces of this group are ignored.
    pub(crate) suppressed: Option<u32>,
}

const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet, AddressFamily::Inet6];

impl Netlink {
    /// Returns all interfaces of the namespace.
    pub(crate) fn interfaces(&mut self) -> io::Result<Vec<Interface>> {
        let mut found = Vec::new();
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        self.ask(NLM_F_DUMP, request, |answer| {
            let RouteNetlinkMessage::NewLink(link) = answer else {
                return;
            };
            let mut interface = Interface {
                index: link.header.index,
                name: String::new(),
                mtu: 0,
                group: 0,
                up: link.header.flags.contains(LinkFlags::Up),
            };
            for attribute in link.attributes {
                match attribute {
                    LinkAttribute::IfName(name) => interface.name = name,
                    LinkAttribute::Mtu(mtu) => interface.mtu = mtu,
                    LinkAttribute::Group(group) => interface.group = group,
                    _ => {}
                }
            }
            found.push(interface);
        })?;
        Ok(found)
    }

    /// Puts an interface into a group.
    pub(crate) fn set_group(&mut self, interface: u32, group: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = interface;
        message.attributes.push(LinkAttribute::Group(group));
        self.ask(NLM_F_ACK, RouteNetlinkMessage::SetLink(message), |_| {})
    }

    /// Brings an interface up.
    pub(crate) fn up(&mut self, interface: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = interface;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.ask(NLM_F_ACK, RouteNetlinkMessage::SetLink(message), |_| {})
    }

    /// Adds default routes of a table through an interface, for both IP versions, unless they
    /// exist. Without IPv6 in the kernel, only IPv4's.
    pub(crate) fn add_default_routes(
        &mut self,
        table: u32,
        interface: u32,
        protocol: u8,
    ) -> io::Result<()> {
        for family in FAMILIES {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            message.header.table = RouteHeader::RT_TABLE_UNSPEC;
            message.header.protocol = RouteProtocol::from(protocol);
            message.header.scope = RouteScope::Link;
            message.header.kind = RouteType::Unicast;
            message.attributes.push(RouteAttribute::Table(table));
            message.attributes.push(RouteAttribute::Oif(interface));
            let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
            let made = self.ask(flags, RouteNetlinkMessage::NewRoute(message), |_| {});
            match made {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => unless_no_ipv6(family, made)?,
            }
        }
        Ok(())
    }

    /// Adds a rule for both IP versions, marked with this protocol.
    pub(crate) fn add_rule(&mut self, rule: &Rule, protocol: u8) -> io::Result<()> {
        for family in FAMILIES {
            let request = RouteNetlinkMessage::NewRule(rule.message(family, protocol));
            let made = self.ask(NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, request, |_| {});
            unless_no_ipv6(family, made)?;
        }
        Ok(())
    }

    /// Removes the rules of both IP versions that are marked with this protocol and for which
    /// `which` returns true. Returns their number.
    pub(crate) fn remove_rules(
        &mut self,
        protocol: u8,
        mut which: impl FnMut(&Rule) -> bool,
    ) -> io::Result<usize> {
        let mut removed = 0;
        for family in FAMILIES {
            let mut found = Vec::new();
            let mut request = RuleMessage::default();
            request.header.family = family;
            self.ask(
                NLM_F_DUMP,
                RouteNetlinkMessage::GetRule(request),
                |answer| {
                    // Without IPv6, the kernel returns the rules of all families.
                    if let RouteNetlinkMessage::NewRule(rule) = answer
                        && rule.header.family == family
                    {
                        found.extend(Rule::of(&rule, protocol));
                    }
                },
            )?;
            for rule in found.iter().filter(|rule| which(rule)) {
                let request = RouteNetlinkMessage::DelRule(rule.message(family, protocol));
                self.ask(NLM_F_ACK, request, |_| {})?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

fn unless_no_ipv6(family: AddressFamily, made: io::Result<()>) -> io::Result<()> {
    use nix::errno::Errno;
    let absent = |error: &io::Error| {
        let number = error.raw_os_error();
        [Errno::EAFNOSUPPORT, Errno::EOPNOTSUPP, Errno::EACCES]
            .map(|errno| Some(errno as i32))
            .contains(&number)
    };
    match made {
        Err(error) if family == AddressFamily::Inet6 && absent(&error) => Ok(()),
        made => made,
    }
}

impl Rule {
    fn message(&self, family: AddressFamily, protocol: u8) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = family;
        message.header.action = RuleAction::ToTable;
        message.attributes = vec![
            RuleAttribute::Priority(self.priority),
            RuleAttribute::Iifname(self.interface.clone()),
            RuleAttribute::Table(self.table),
            RuleAttribute::Protocol(RouteProtocol::from(protocol)),
        ];
        if let Some(group) = self.suppressed {
            message
                .attributes
                .push(RuleAttribute::SuppressIfGroup(group));
        }
        if let Some([v4, v6]) = self.messages {
            let (protocol, (start, end)) = match family {
                AddressFamily::Inet6 => (IpProtocol::Other(ICMP_V6), v6),
                _ => (IpProtocol::Icmp, v4),
            };
            let only = RulePortRange { start, end };
            message.attributes.extend([
                RuleAttribute::IpProtocol(protocol),
                RuleAttribute::DestinationPortRange(only),
            ]);
        }
        message
    }

    fn of(message: &RuleMessage, protocol: u8) -> Option<Self> {
        let mut rule = Self {
            priority: 0,
            interface: String::new(),
            messages: None,
            table: u32::from(message.header.table),
            suppressed: None,
        };
        let mut is_ours = false;
        for attribute in &message.attributes {
            match attribute {
                RuleAttribute::Priority(priority) => rule.priority = *priority,
                RuleAttribute::Iifname(name) => rule.interface.clone_from(name),
                RuleAttribute::Table(table) => rule.table = *table,
                RuleAttribute::SuppressIfGroup(group) => rule.suppressed = Some(*group),
                // Any range of ports, since another version of this program may have used others.
                RuleAttribute::DestinationPortRange(RulePortRange { start, end }) => {
                    rule.messages = Some([(*start, *end); 2]);
                }
                RuleAttribute::Protocol(of) => is_ours = u8::from(*of) == protocol,
                _ => {}
            }
        }
        is_ours.then_some(rule)
    }
}
