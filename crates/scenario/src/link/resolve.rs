//! Links.

use std::sync::Arc;

use bentpipe_link::{Changes, RateCourse};
use bentpipe_types::{BitRate, Span};

use crate::access::resolve::AccessContext;
use crate::access::settings::{Carrier, OnDemand};
use crate::acks::resolve::resolve_acks;
use crate::acks::settings::Acks;
use crate::acm::modcod::Acm;
use crate::class::settings::PacketClass;
use crate::directory::{Directory, member_name};
use crate::fault::{Fault, fault, path};
use crate::limits::MAX_LOST_PACKETS;
use crate::link::compression::Compression;
use crate::link::ends::{LinkEnds, link_ends};
use crate::link::errors::resolve_random_errors;
use crate::link::framing::{LinkFraming, default_mtu, longest_packet};
use crate::link::schema::LinkFile;
use crate::link::settings::{Arp, Direction, Errors, Link, RandomErrors, Way};
use crate::link::table::{LinkTable, PacketConstraints};
use crate::named::Named;
use crate::orbit::path::resolve_path;
use crate::orbit::settings::Orbits;
use crate::quantity::count::QueueLimit;
use crate::quantity::mtu::Mtu;
use crate::quantity::redundancy::Redundancy;
use crate::quantity::time::Length;
use crate::queue::resolved::Queue;
use crate::queue::schema::QueueKind;
use crate::traces::files::Files;

/// Context for the settings of links.
#[derive(Clone, Copy)]
pub(crate) struct LinkContext<'a> {
    pub(crate) classes: &'a [PacketClass],
    pub(crate) carriers: &'a [Carrier],
    pub(crate) orbits: &'a Orbits,
    pub(crate) files: &'a Files<'a>,
    pub(crate) duration: Span,
}

/// Returns the links in the order of the file.
pub(crate) fn resolve_links(
    links: &Named<LinkFile>,
    nodes: &Directory<'_>,
    around: &LinkContext<'_>,
) -> Result<Vec<Link>, Fault> {
    let mut resolved = Vec::new();
    let mut lost_packets = 0_usize;
    for (name, link) in links.iter() {
        let LinkEnds {
            first,
            second,
            count,
            others,
        } = link_ends(name, link, nodes)?;
        let made = count.unwrap_or(1);
        let path = match &link.path {
            None => None,
            Some(file) => {
                let path = resolve_path(name, file, around.orbits, around.duration)?;
                Some(Arc::new(path))
            }
        };
        let table = LinkTable {
            name,
            link,
            classes: around.classes,
            carriers: around.carriers,
            files: around.files,
            route: path.as_deref(),
            duration: around.duration,
        };
        table.refuse_what_has_no_effect()?;
        table.check_broadcast()?;
        let (forward, backward) = table.directions()?;
        let mtu = table.mtu(&forward, backward.as_ref())?;
        let fragments = link.fragment.unwrap_or(false);
        if fragments && mtu.is_none() {
            let message = "has no effect: the link has no mtu".to_owned();
            return Err(fault(&["links", name, "fragment"], message));
        }
        if let Some(mtu) = mtu.filter(|mtu| *mtu > TUNNELLED)
            && (std::iter::once(&forward).chain(&backward)).any(|direction| direction.tunnel)
        {
            let message = format!(
                r#"expected at most "{TUNNELLED} B" in a tunnel, whose header is in the packet, too, got "{mtu} B""#
            );
            return Err(fault(&["links", name, "mtu"], message));
        }
        let arp = table.arp(&forward, backward.as_ref())?;
        for direction in std::iter::once(&forward).chain(&backward) {
            let listed = direction.errors.lost_packets.len().saturating_mul(made);
            lost_packets = lost_packets.saturating_add(listed);
        }
        if lost_packets > MAX_LOST_PACKETS {
            let message = format!("expected at most {MAX_LOST_PACKETS} lost_packets in all");
            return Err(fault(&["links", name], message));
        }
        resolved.extend((0..made).map(|n| Link {
            name: member_name(name, count, n),
            between: [first.nth(n), second.nth(n)],
            others: others.clone(),
            broadcast: link.broadcast,
            mtu,
            fragments,
            arp,
            path: path.clone(),
            forward: forward.clone(),
            backward: backward.clone(),
        }));
    }
    Ok(resolved)
}

/// Range of MTUs. The least has room for a TCP header with all options and some payload.
const MTU: std::ops::RangeInclusive<u64> = 128..=65_535;

/// Longest packet in a tunnel: the longest outer IPv4 packet (RFC 2003 section 3.1) without its
/// header.
const TUNNELLED: u32 = 65_535 - 20;

/// Default lifetime of a link address (RFC 1122 section 2.3.2.1: "on the order of a minute").
const ARP_TIMEOUT: Span = Span::from_secs(60);

/// Default queue of packets that wait for an address: about as many packets of 2 KiB as fit in
/// Linux's unres_qlen_bytes.
const ARP_QUEUE: u32 = 101;

impl LinkTable<'_> {
    /// Checks a broadcast channel: it has one direction, and no setting that would need state at
    /// each receiver.
    fn check_broadcast(&self) -> Result<(), Fault> {
        let link = self.link;
        if !link.broadcast {
            return Ok(());
        }
        if !link.one_way {
            let message = "expected true with broadcast: the opposite direction needs links of its own, such as a one-way link from each receiver";
            return Err(fault(&["links", self.name, "one_way"], message));
        }
        let own = link.forward.as_ref();
        macro_rules! given {
            ($($key:ident),*) => {
                [$((
                    stringify!($key),
                    own.is_some_and(|own| own.$key.is_some()),
                    link.$key.is_some(),
                )),*]
            };
        }
        let of_link = [
            ("arp", false, link.arp.is_some()),
            ("fragment", false, link.fragment == Some(true)),
        ];
        let mut ends = given![acks, compression, tunnel, framing];
        // "none" may be given.
        let framing = &mut ends[3];
        framing.1 &= own.and_then(|own| own.framing) != Some(LinkFraming::NONE);
        framing.2 &= link.framing != Some(LinkFraming::NONE);
        let given = ends
            .into_iter()
            .chain(of_link)
            .find(|(_, own, shared)| *own || *shared);
        match given {
            Some((key, own, _)) => Err(Fault::new(
                self.path(Way::Forward, own, &[key]),
                "a broadcast channel has none: it would need state at each receiver",
            )),
            None => Ok(()),
        }
    }

    /// Returns the MTU: what the file gives, or the smaller default of the two framings.
    fn mtu(&self, forward: &Direction, backward: Option<&Direction>) -> Result<Option<u32>, Fault> {
        let refuse = |message: String| Err(fault(&["links", self.name, "mtu"], message));
        let both = || std::iter::once(forward).chain(backward);
        // A limit of the framing includes a tunnel's header.
        let inner = |direction: &Direction, limit: u32| {
            limit
                - if direction.tunnel {
                    65_535 - TUNNELLED
                } else {
                    0
                }
        };
        let Some(Mtu(mtu)) = self.link.mtu else {
            let defaults = both().filter_map(|direction| {
                let limit = default_mtu(direction.framing)?;
                Some(match longest_packet(direction.framing) {
                    Some(limit) => inner(direction, limit),
                    None => limit,
                })
            });
            return Ok(defaults.min());
        };
        if !MTU.contains(&mtu.0.get()) {
            let (least, most) = (MTU.start(), MTU.end());
            return refuse(format!(
                r#"expected "{least} B" to "{most} B", got "{mtu}""#
            ));
        }
        let bytes = mtu.0.get() as u32;
        for direction in both() {
            if let Some(limit) = longest_packet(direction.framing) {
                let limit = inner(direction, limit);
                if bytes > limit {
                    return refuse(format!(
                        r#"expected at most "{limit} B" with this framing, got "{mtu}""#
                    ));
                }
            }
        }
        Ok(Some(bytes))
    }

    /// Returns the address resolution. Answers need both directions, and a tunnel excludes it,
    /// because a tunnel joins IP nodes.
    fn arp(&self, forward: &Direction, backward: Option<&Direction>) -> Result<Option<Arp>, Fault> {
        let Some(file) = self.link.arp else {
            return Ok(None);
        };
        let refuse = |key: &[&str], message: String| {
            let key = [&["links", self.name, "arp"], key].concat();
            Err(fault(&key, message))
        };
        if forward.framing != LinkFraming::ETHERNET {
            let message = r#"has no effect: only framing = "ethernet" has link addresses"#;
            return refuse(&[], message.to_owned());
        }
        let Some(backward) = backward else {
            let message = "expected both directions: on a one_way link no answer comes back";
            return refuse(&[], message.to_owned());
        };
        if backward.framing != LinkFraming::ETHERNET {
            let message = r#"expected framing = "ethernet" in both directions"#;
            return refuse(&[], message.to_owned());
        }
        if forward.tunnel || backward.tunnel {
            let message =
                "expected no tunnel on the link: there is no address resolution in a tunnel";
            return refuse(&[], message.to_owned());
        }
        let timeout = file.timeout.map_or(ARP_TIMEOUT, |timeout| timeout.0);
        if timeout < Span::from_secs(1) || timeout > Span::from_secs(24 * 3600) {
            let message = format!(r#"expected "1 s" to "24 h", got "{}""#, Length(timeout));
            return refuse(&["timeout"], message);
        }
        let queue_packets = match file.queue {
            None => ARP_QUEUE,
            Some(QueueLimit::Packets(packets)) if packets > 0 => packets,
            Some(limit) => {
                let message = format!(r#"expected packets such as "3 packets", got "{limit}""#);
                return refuse(&["queue"], message);
            }
        };
        Ok(Some(Arp {
            timeout,
            queue_packets,
        }))
    }

    fn directions(&self) -> Result<(Direction, Option<Direction>), Fault> {
        let there = self.parts(Way::Forward)?;
        if self.link.one_way {
            if self.link.backward.is_some() {
                let path = path(&["links", self.name, "return"]);
                return Err(Fault::new(path, "has no effect: the link is one_way"));
            }
            let back = there.delay;
            return Ok((self.direction(Way::Forward, there, back)?, None));
        }
        let back = self.parts(Way::Return)?;
        let delays = (there.delay, back.delay);
        let forward = self.direction(Way::Forward, there, delays.1)?;
        let backward = self.direction(Way::Return, back, delays.0)?;
        Ok((forward, Some(backward)))
    }

    /// Returns the parts on which the rest of a direction depends.
    fn parts(&self, way: Way) -> Result<Parts, Fault> {
        let own_queue = self.own(way).and_then(|own| own.queue.as_ref());
        let kind = own_queue
            .or(self.link.queue.as_ref())
            .map(|queue| queue.kind);
        let (acks, tunnel) = self.acks(way, kind.unwrap_or(QueueKind::DropTail))?;
        let compression = self.compression(way, tunnel)?;
        let framing = self.framing(way, compression)?;
        let framed = PacketConstraints {
            keeps_order: tunnel || compression != Compression::None || framing != LinkFraming::NONE,
            compacts: matches!(acks, Acks::Compaction { .. }),
        };
        let (changes, acm) = self.changes(way, self.files, &framed)?;
        Ok(Parts {
            rate: self.rate(way, changes.as_ref(), acm.as_ref())?,
            delay: self.delay(way, changes.as_ref())?,
            acks,
            tunnel,
            compression,
            framing,
            changes: changes.map(Arc::new),
            acm: acm.map(Arc::new),
        })
    }

    /// Returns the direction, given the delay of the opposite one.
    fn direction(&self, way: Way, parts: Parts, back: Span) -> Result<Direction, Fault> {
        let beside = AccessContext {
            rate: parts.rate,
            delay: parts.delay,
            back,
            changes: parts.changes.as_deref(),
        };
        let access = self.access(way, &beside)?;
        // Packets that wait for a grant are in this queue.
        let loop_delay = access.as_ref().map_or(Span::ZERO, OnDemand::loop_delay);
        let round_trip = parts.delay + back + loop_delay;
        let own = self.own(way);
        let own_queue = own.and_then(|own| own.queue.as_ref());
        let file = own_queue.or(self.link.queue.as_ref());
        let queue = Queue::resolve(file, self.classes, parts.rate, round_trip).map_err(
            |(key, message)| {
                let path = self.path(way, own_queue.is_some(), &["queue", key]);
                Fault::new(path, message)
            },
        )?;
        let redundancy = own.and_then(|own| own.redundancy).or(self.link.redundancy);
        Ok(Direction {
            rate: parts.rate,
            delay: parts.delay,
            queue,
            errors: self.errors(way)?,
            redundancy: redundancy.unwrap_or(Redundancy::NONE),
            access,
            acks: parts.acks,
            compression: parts.compression,
            framing: parts.framing,
            tunnel: parts.tunnel,
            changes: parts.changes,
            acm: parts.acm,
        })
    }

    /// Returns the rate. It is the average over the run if only a trace gives it, and the rate in
    /// clear sky with adaptive coding and modulation.
    fn rate(
        &self,
        way: Way,
        changes: Option<&Changes>,
        acm: Option<&Acm>,
    ) -> Result<BitRate, Fault> {
        let own = self.own(way).and_then(|own| own.rate);
        let given = own.or(self.link.rate).map(|rate| rate.0);
        if let Some(acm) = acm {
            if given.is_some() {
                let message = "has no effect: acm makes the rate";
                return Err(Fault::new(
                    self.path(way, own.is_some(), &["rate"]),
                    message,
                ));
            }
            let rate = acm.rate(acm.in_clear_sky());
            if let Some(rate) = BitRate::new(rate) {
                return Ok(rate);
            }
        }
        let always = match changes.map(|changes| &changes.rate) {
            Some(RateCourse::Opportunities(opportunities)) => {
                if given.is_some() {
                    let message = "has no effect: the trace determines when packets are sent";
                    return Err(Fault::new(
                        self.path(way, own.is_some(), &["rate"]),
                        message,
                    ));
                }
                Some(opportunities.mean_rate())
            }
            Some(RateCourse::Steps(profile)) if profile.steps()[0].0 == Span::ZERO => {
                Some(profile.mean(self.duration, 0, |rate| rate as f64))
            }
            _ => None,
        };
        let average = |rate: f64| BitRate::new((rate + 0.5).max(1.0) as u64);
        given.or(always.and_then(average)).ok_or_else(|| {
            let expected = r#"a rate such as "10 Mbit/s""#;
            self.missing(way, "rate", |other| other.rate.is_some(), expected)
        })
    }

    /// Returns the delay, or its average over the run if only a trace gives it.
    fn delay(&self, way: Way, changes: Option<&Changes>) -> Result<Span, Fault> {
        let own = self.own(way).and_then(|own| own.delay);
        let given = own.or(self.link.delay).map(|delay| delay.0);
        if self.route.is_some() && given.is_some() {
            let path = self.path(way, own.is_some(), &["delay"]);
            return Err(Fault::new(path, "has no effect: path determines the delay"));
        }
        let always = changes
            .and_then(|changes| changes.delay.as_ref())
            .filter(|profile| profile.steps()[0].0 == Span::ZERO)
            .map(|profile| {
                let mean = profile.mean(self.duration, Span::ZERO, Span::as_secs_f64);
                Span::from_secs_f64(mean)
            });
        given.or(always).ok_or_else(|| {
            let expected = r#"a length of time such as "250 ms""#;
            self.missing(way, "delay", |other| other.delay.is_some(), expected)
        })
    }

    /// Returns the reduction of acknowledgments, and whether there is a tunnel.
    fn acks(&self, way: Way, queue: QueueKind) -> Result<(Acks, bool), Fault> {
        let own = self.own(way);
        let own_acks = own.and_then(|own| own.acks);
        let at = |key: &str| self.path(way, own_acks.is_some(), &["acks", key]);
        let acks = resolve_acks(own_acks.or(self.link.acks))
            .map_err(|(key, message)| Fault::new(at(key), message))?;
        if acks != Acks::None && queue != QueueKind::DropTail {
            let message = format!(
                "\"{}\" removes from the queue itself: expected queue.kind = \"drop-tail\", got \"{queue}\"",
                acks.kind()
            );
            return Err(Fault::new(at("kind"), message));
        }
        let own_tunnel = own.and_then(|own| own.tunnel);
        let compacts = matches!(acks, Acks::Compaction { .. });
        let tunnel = own_tunnel.or(self.link.tunnel).unwrap_or(compacts);
        if compacts && !tunnel {
            let message = "expected true: compacted acknowledgments are no IP packets, and travel in a tunnel";
            return Err(Fault::new(
                self.path(way, own_tunnel.is_some(), &["tunnel"]),
                message,
            ));
        }
        Ok((acks, tunnel))
    }

    fn compression(&self, way: Way, tunnel: bool) -> Result<Compression, Fault> {
        let own = self.own(way).and_then(|own| own.compression);
        let compression = own.or(self.link.compression).unwrap_or(Compression::None);
        if compression == Compression::Rfc1144 && tunnel {
            let message = "\"rfc1144\" compresses TCP/IP headers, and a tunnel hides them: expected \"none\" or \"v42bis\" in a tunnel";
            return Err(Fault::new(
                self.path(way, own.is_some(), &["compression"]),
                message,
            ));
        }
        Ok(compression)
    }

    fn framing(&self, way: Way, compression: Compression) -> Result<LinkFraming, Fault> {
        let own = self.own(way).and_then(|own| own.framing);
        let framing = own.or(self.link.framing).unwrap_or(LinkFraming::NONE);
        if framing.is_dvb() && compression != Compression::None {
            let message = format!(
                r#"expected "none", "ethernet", "ppp", "ppp-compressed" or a size with compression = "{compression}": MPE, ULE and GSE carry whole IP packets"#
            );
            return Err(Fault::new(
                self.path(way, own.is_some(), &["framing"]),
                message,
            ));
        }
        Ok(framing)
    }

    fn errors(&self, way: Way) -> Result<Errors, Fault> {
        let own = self.own(way).and_then(|own| own.errors.as_ref());
        let Some(errors) = own.or(self.link.errors.as_ref()) else {
            return Ok(Errors {
                random: RandomErrors::None,
                lost_packets: Arc::new([]),
            });
        };
        let at = |keys: &[&str]| self.path(way, own.is_some(), keys);
        let random = resolve_random_errors(errors)
            .map_err(|(key, message)| Fault::new(at(&["errors", key]), message))?;
        let mut lost_packets = errors.lost_packets.clone().unwrap_or_default();
        if errors.lost_packets.is_some() && own.is_none() {
            let message = "expected in forward or return: each direction counts its own packets";
            return Err(Fault::new(at(&["errors", "lost_packets"]), message));
        }
        if lost_packets.contains(&0) {
            let message = "expected numbers from 1: the first packet is 1";
            return Err(Fault::new(at(&["errors", "lost_packets"]), message));
        }
        lost_packets.sort_unstable();
        lost_packets.dedup();
        Ok(Errors {
            random,
            lost_packets: lost_packets.into(),
        })
    }

    /// Refuses a key of the link that both directions override: it is a mistake, above all in a
    /// `--set`.
    fn refuse_what_has_no_effect(&self) -> Result<(), Fault> {
        let link = self.link;
        let (Some(forward), Some(backward)) = (&link.forward, &link.backward) else {
            return Ok(());
        };
        macro_rules! overruled {
            ($($key:ident),*) => {
                [$((
                    stringify!($key),
                    link.$key.is_some() && forward.$key.is_some() && backward.$key.is_some(),
                )),*]
            };
        }
        let overruled = overruled![
            rate,
            delay,
            queue,
            errors,
            redundancy,
            framing,
            access,
            acks,
            compression,
            tunnel,
            schedule,
            schedule_every,
            traces,
            acm,
            outages,
            fading,
            duplication,
            corruption,
            reordering,
            in_order
        ];
        match overruled.iter().find(|(_, overruled)| *overruled) {
            Some((key, _)) => Err(fault(
                &["links", self.name, key],
                format!("has no effect: forward.{key} and return.{key} overrule it"),
            )),
            None => Ok(()),
        }
    }
}

/// Parts of a direction that are resolved before its queue.
struct Parts {
    rate: BitRate,
    delay: Span,
    acks: Acks,
    tunnel: bool,
    compression: Compression,
    framing: LinkFraming,
    changes: Option<Arc<Changes>>,
    acm: Option<Arc<Acm>>,
}
