//! Property tests: any stream of acknowledgments through any return link.

use std::collections::BTreeMap;

use bentpipe_link::{EndCtx, FarEnd, Framing, Limit, QueueDiscipline, Verdict};
use bentpipe_types::{
    Address, Bytes, Flags, PacketRef, PacketStore, SackBlock, Seq, Span, Time, Tunnel,
};
use proptest::prelude::*;

use super::rules::reports_duplicate;
use super::{
    Expander, ExpanderSettings, Method, Reconstructor, ReconstructorSettings, Spacing, WaterMarks,
};
use crate::testing::{Ack, Bench, ack};
use crate::{Gate, Terminal, TunnelEntry};

/// An action of the receiver.
#[derive(Clone, Copy, Debug)]
enum Step {
    Advance(u32),
    Duplicate(bool),
    Window(u16),
    Data(u16),
    Stale(u32),
    SackMore(u32),
    DuplicateSack,
    Ece,
    Fin,
    /// The transmitter sends this many packets.
    Transmit(u8),
}

fn steps() -> impl Strategy<Value = Vec<(bool, Step)>> {
    let step = prop_oneof![
        20 => prop_oneof![Just(1460_u32), Just(1024), Just(1), 1_u32..5000]
            .prop_map(Step::Advance),
        2 => (1_u32..70_000).prop_map(Step::Advance),
        6 => any::<bool>().prop_map(Step::Duplicate),
        1 => any::<u16>().prop_map(Step::Window),
        1 => (1_u16..1461).prop_map(Step::Data),
        1 => (1_u32..9000).prop_map(Step::Stale),
        4 => (1_u32..9000).prop_map(Step::SackMore),
        1 => Just(Step::DuplicateSack),
        1 => Just(Step::Ece),
        1 => Just(Step::Fin),
        3 => (1_u8..4).prop_map(Step::Transmit),
    ];
    prop::collection::vec((prop::bool::weighted(0.8), step), 1..250)
}

/// A receiver that turns steps into packets.
struct Receiver {
    number: u32,
    window: u16,
    ece: bool,
    blocks: Vec<(u32, u32)>,
    clock: u32,
    stamped: bool,
    port: u16,
}

impl Receiver {
    fn new(number: u32, stamped: bool, port: u16) -> Self {
        Self {
            number,
            window: 30_000,
            ece: false,
            blocks: Vec::new(),
            clock: number,
            stamped,
            port,
        }
    }

    fn packet(&mut self, step: Step) -> Option<Ack> {
        self.clock = self.clock.wrapping_add(1);
        let mut extra = None;
        let mut packet = ack(self.number);
        match step {
            Step::Advance(by) => {
                self.number = self.number.wrapping_add(by);
                let number = Seq::new(self.number);
                self.blocks
                    .retain(|&(start, _)| Seq::new(start).after(number));
            }
            Step::Duplicate(sack) => {
                if sack && self.blocks.is_empty() {
                    let start = self.number.wrapping_add(2000);
                    self.blocks.push((start, start.wrapping_add(1000)));
                }
            }
            Step::Window(window) => self.window = window,
            Step::Data(length) => packet.payload = length,
            Step::Stale(_) => (),
            Step::SackMore(by) => match self.blocks.first_mut() {
                Some((_, end)) => *end = end.wrapping_add(by),
                None => {
                    let start = self.number.wrapping_add(1000);
                    self.blocks.push((start, start.wrapping_add(by)));
                }
            },
            Step::DuplicateSack => {
                let start = self.number.wrapping_sub(1000);
                extra = Some((start, start.wrapping_add(500)));
            }
            Step::Ece => self.ece = !self.ece,
            Step::Fin => packet.flags = Flags::ACK.with(Flags::FIN),
            Step::Transmit(_) => return None,
        }
        packet.number = self.number;
        if let Step::Stale(by) = step {
            packet.number = packet.number.wrapping_sub(by);
        }
        packet.port = self.port;
        packet.window = self.window;
        if self.ece {
            packet.flags = packet.flags.with(Flags::ECE);
        }
        packet.timestamps = self
            .stamped
            .then_some((self.clock, self.clock.wrapping_sub(9)));
        packet.blocks = extra
            .into_iter()
            .chain(self.blocks.iter().copied())
            .collect();
        Some(packet)
    }
}

/// The visible content of a packet.
#[derive(Clone, Debug)]
struct Seen {
    number: Seq,
    window: u16,
    flags: Flags,
    payload: u16,
    duplicate_sack: bool,
    blocks: Vec<SackBlock>,
}

fn look(packets: &PacketStore, packet: PacketRef) -> (u16, Seen) {
    let record = packets.get(packet);
    let blocks = packets.sack_blocks(packet);
    let seen = Seen {
        number: record.acknowledgment,
        window: record.window,
        flags: record.flags,
        payload: record.payload_length,
        duplicate_sack: reports_duplicate(record.acknowledgment, blocks.as_slice()),
        blocks: blocks.as_slice().to_vec(),
    };
    (record.source.port, seen)
}

/// Content of a stream as learned by a sender.
#[derive(Debug, Default, PartialEq)]
struct Learned {
    highest: Option<Seq>,
    window: u16,
    /// Duplicates by acknowledgment number (RFC 5681 section 2).
    duplicates: BTreeMap<u32, Duplicates>,
    /// Received ranges above the highest number, relative to it.
    sacked: Vec<(u32, u32)>,
    /// Packets with more content than a cumulative acknowledgment.
    other: u32,
    duplicate_sacks: u32,
    ece_changes: u32,
}

/// Duplicates of one number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Duplicates {
    /// Duplicates up to the three that signal a loss.
    marking: u32,
    /// Duplicates without SACK blocks: each inflates the window of a sender without SACK.
    inflating: u32,
    all: Ignored,
}

/// A number that is ignored in comparisons.
#[derive(Clone, Copy, Debug, Default)]
struct Ignored(u32);

impl PartialEq for Ignored {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// Returns the union of all SACK blocks above a number, relative to it.
fn sacked(stream: &[Seen], highest: Seq) -> Vec<(u32, u32)> {
    let mut blocks: Vec<(u32, u32)> = stream
        .iter()
        .flat_map(|seen| &seen.blocks)
        .filter(|block| block.end.after(highest))
        .map(|block| (block.start.latest(highest) - highest, block.end - highest))
        .collect();
    blocks.sort_unstable();
    let mut union: Vec<(u32, u32)> = Vec::new();
    for (start, end) in blocks {
        match union.last_mut().filter(|last| last.1 >= start) {
            Some(last) => last.1 = last.1.max(end),
            None => union.push((start, end)),
        }
    }
    union
}

fn learn(stream: &[Seen]) -> Learned {
    let mut learned = Learned::default();
    let mut ece = false;
    for seen in stream {
        let plain = seen.payload == 0 && !seen.flags.has(Flags::FIN);
        learned.other += u32::from(!plain);
        learned.duplicate_sacks += u32::from(seen.duplicate_sack);
        learned.ece_changes += u32::from(seen.flags.has(Flags::ECE) != ece);
        ece = seen.flags.has(Flags::ECE);
        let highest = learned.highest.unwrap_or(seen.number - 1);
        if seen.number.before(highest) {
            continue;
        }
        if seen.number == highest && plain && seen.window == learned.window {
            let duplicates = learned.duplicates.entry(highest.get()).or_default();
            duplicates.all.0 += 1;
            duplicates.marking = duplicates.all.0.min(3);
            duplicates.inflating += u32::from(seen.blocks.is_empty());
        }
        learned.highest = Some(seen.number);
        learned.window = seen.window;
    }
    if let Some(highest) = learned.highest {
        learned.sacked = sacked(stream, highest);
    }
    learned
}

const TUNNEL: Tunnel = Tunnel {
    source: Address(1),
    destination: Address(9),
};

fn expander(spacing: Option<Spacing>, high: u32) -> Expander {
    let terminal = Terminal {
        address: Address(1),
        behind: Some(vec![Address(1)]),
    };
    Expander::new(ExpanderSettings {
        gate: Gate::new(Some(Address(9)), vec![terminal]),
        high: high.min(255) as u8,
        spacing,
        flows: 2,
    })
}

/// A return link: queue, tunnel, losses and far end.
struct Link<'a> {
    bench: Bench,
    queue: Box<dyn QueueDiscipline>,
    entry: Option<TunnelEntry>,
    far_end: Option<&'a mut dyn FarEnd>,
    losses: Vec<bool>,
    transmitted: usize,
    highest: BTreeMap<u16, Seq>,
    offered: BTreeMap<u16, Vec<Seen>>,
    arrived: BTreeMap<u16, Vec<Seen>>,
    out: Vec<PacketRef>,
    dropped: u32,
    lost: u32,
}

const PER_PACKET: Span = Span::from_millis(10);

impl<'a> Link<'a> {
    fn new(
        method: Method,
        limit: u64,
        far_end: Option<&'a mut dyn FarEnd>,
        losses: Vec<bool>,
    ) -> Self {
        Self {
            bench: Bench::default(),
            queue: method.queue(Limit::Packets(limit), 2),
            entry: matches!(method, Method::Compaction(_)).then(|| TunnelEntry::new(TUNNEL)),
            far_end,
            losses,
            transmitted: 0,
            highest: BTreeMap::new(),
            offered: BTreeMap::new(),
            arrived: BTreeMap::new(),
            out: Vec::new(),
            dropped: 0,
            lost: 0,
        }
    }

    fn offer(&mut self, ack: &Ack) {
        let packet = ack.insert(&mut self.bench.packets);
        let (port, seen) = look(&self.bench.packets, packet);
        if self.queue.enqueue(packet, &mut self.bench.cx()) == Verdict::Dropped {
            self.bench.packets.release(packet);
            self.dropped += 1;
        } else {
            let highest = self.highest.entry(port).or_insert(seen.number);
            *highest = highest.latest(seen.number);
            self.offered.entry(port).or_default().push(seen);
        }
    }

    /// Transmits a packet, if one is queued.
    fn transmit(&mut self) -> bool {
        self.wait(self.bench.now + PER_PACKET);
        let Some((packet, length)) = self.queue.dequeue(&mut self.bench.cx()) else {
            return false;
        };
        if let Some(entry) = &mut self.entry {
            assert_eq!(length, self.bench.packets.get(packet).length());
            let longer = entry.transmit(packet, length, &mut self.bench.packets);
            assert_eq!(longer, length + Bytes::new(20));
        }
        let lost = self.losses.get(self.transmitted).copied().unwrap_or(false);
        self.transmitted += 1;
        if lost {
            self.lost += 1;
            self.bench.packets.release(packet);
        } else if let Some(far_end) = &mut self.far_end {
            far_end.on_arrival(
                packet,
                &mut EndCtx::new(self.bench.now, &mut self.bench.packets, &mut self.out),
            );
        } else {
            self.out.push(packet);
        }
        self.arrive();
        true
    }

    /// Processes the far end's deadlines until `until`.
    fn wait(&mut self, until: Time) {
        while let Some(far_end) = &mut self.far_end {
            let Some(at) = far_end.next_deadline().filter(|&at| at <= until) else {
                break;
            };
            assert!(at >= self.bench.now, "deadlines are not in the past");
            self.bench.now = at;
            far_end.on_deadline(&mut EndCtx::new(at, &mut self.bench.packets, &mut self.out));
            assert_ne!(far_end.next_deadline(), Some(at), "makes progress");
            self.arrive();
        }
        self.bench.now = until;
    }

    fn arrive(&mut self) {
        for packet in std::mem::take(&mut self.out) {
            let (port, seen) = look(&self.bench.packets, packet);
            assert!(
                seen.number.at_or_before(self.highest[&port]),
                "beyond what the receiver sent"
            );
            self.arrived.entry(port).or_default().push(seen);
            self.bench.packets.release(packet);
        }
    }

    fn run(&mut self, start: u32, stamped: bool, steps: &[(bool, Step)]) {
        let mut receivers = [
            Receiver::new(start, stamped, 1),
            Receiver::new(!start, false, 2),
        ];
        for &(first, step) in steps {
            if let Some(ack) = receivers[usize::from(!first)].packet(step) {
                self.offer(&ack);
            } else if let Step::Transmit(count) = step {
                for _ in 0..count {
                    self.transmit();
                }
            }
        }
        while self.transmit() {}
        self.wait(self.bench.now + Span::from_secs(10));
        if let Some(far_end) = &self.far_end {
            assert_eq!(far_end.held(), 0, "held for ever");
            assert_eq!(far_end.next_deadline(), None);
        }
        assert_eq!(self.bench.packets.held(), 0, "a packet leaked");
        let given_up = self.queue.given_up();
        let offered: usize = self.offered.values().map(Vec::len).sum();
        assert_eq!(
            offered as u64,
            given_up.removed + self.transmitted as u64,
            "every packet is accounted for"
        );
    }

    /// Returns sent and received packets of each flow. Numbers never decrease, except stale ones.
    fn streams(&self) -> impl Iterator<Item = (&Vec<Seen>, &[Seen])> {
        self.offered.iter().map(|(port, offered)| {
            let arrived = self.arrived.get(port).map_or(&[][..], Vec::as_slice);
            (offered, arrived)
        })
    }

    fn without_stale(stream: &[Seen]) -> Vec<Seq> {
        // Packets that were stale when sent are not part of the claim.
        stream.iter().map(|seen| seen.number).collect()
    }
}

fn has_stale(stream: &[Seen]) -> bool {
    stream
        .windows(2)
        .any(|pair| pair[1].number.before(pair[0].number))
}

/// Asserts that the final state, and all content beyond cumulative acknowledgments, is equal.
fn same(offered: &[Seen], arrived: &[Seen]) -> Result<(), TestCaseError> {
    prop_assert_eq!(learn(offered), learn(arrived));
    Ok(())
}

/// After losses: asserts that nothing new appears and no number decreases.
fn no_more(offered: &[Seen], arrived: &[Seen]) -> Result<(), TestCaseError> {
    let (told, heard) = (learn(offered), learn(arrived));
    // Of the packets with one number, all but the first may be duplicates: a loss turns a stale one
    // or a window update into a duplicate as well.
    let mut sent = BTreeMap::new();
    for seen in offered {
        *sent.entry(seen.number.get()).or_insert(0_u32) += 1;
    }
    for (number, count) in &heard.duplicates {
        prop_assert!(
            count.all.0 < *sent.get(number).unwrap_or(&0),
            "a duplicate of {} that the receiver did not send",
            number
        );
    }
    prop_assert!(heard.other <= told.other);
    prop_assert!(heard.duplicate_sacks <= told.duplicate_sacks);
    if !has_stale(offered) {
        let numbers = Link::without_stale(arrived);
        prop_assert!(!numbers.windows(2).any(|pair| pair[1].before(pair[0])));
    }
    Ok(())
}

fn marks() -> impl Strategy<Value = WaterMarks> {
    (0_u32..8, 1_u32..300).prop_map(|(low, high)| WaterMarks {
        low,
        high,
        ..WaterMarks::default()
    })
}

fn losses() -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec(prop::bool::weighted(0.2), 250)
}

proptest! {
    #[test]
    fn suppression_preserves_the_final_state_and_non_cumulative_content(
        start: u32, stamped: bool, steps in steps(), marks in marks(),
        limit in prop_oneof![Just(10_000_u64), 2_u64..20], losses in losses(),
    ) {
        let mut link = Link::new(Method::Suppression(marks), limit, None, vec![]);
        link.run(start, stamped, &steps);
        for (offered, arrived) in link.streams() {
            same(offered, arrived)?;
            no_more(offered, arrived)?;
        }
        let mut link = Link::new(Method::Suppression(marks), limit, None, losses);
        link.run(start, stamped, &steps);
        for (offered, arrived) in link.streams() {
            no_more(offered, arrived)?;
        }
    }

    #[test]
    fn compaction_and_expansion_restore_every_acknowledgment(
        start: u32, stamped: bool, steps in steps(), marks in marks(),
        limit in prop_oneof![Just(10_000_u64), 2_u64..20],
        spacing in prop_oneof![Just(None), any::<bool>().prop_map(Some)],
        capacity in prop_oneof![Just(4096_usize), 1_usize..20],
    ) {
        let spacing = spacing.map(|per_flow| Spacing { per_flow, capacity, ..Spacing::default() });
        let mut far_end = expander(spacing, marks.high);
        let mut link = Link::new(Method::Compaction(marks), limit, Some(&mut far_end), vec![]);
        link.run(start, stamped, &steps);
        let (mut sent, mut seen) = (0, 0);
        for (offered, arrived) in link.streams() {
            same(offered, arrived)?;
            no_more(offered, arrived)?;
            sent += offered.len() as u64;
            seen += arrived.len() as u64;
        }
        let removed = link.queue.given_up().removed;
        let mut duplicates = 0;
        link.queue.tally(&mut |flow, name, value| {
            if flow.is_none() && name == "duplicate_acks_removed" {
                duplicates = value;
            }
        });
        prop_assert_eq!(sent, seen + duplicates);
        let restored = removed - duplicates;
        prop_assert_eq!(far_end.totals().regenerated, restored);
        for reason in super::Refusal::ALL {
            prop_assert_eq!(far_end.totals().refused(reason), 0);
        }
    }

    #[test]
    fn after_losses_an_expander_regenerates_at_most_the_removed_acknowledgments(
        start: u32, stamped: bool, steps in steps(), marks in marks(), losses in losses(),
        spacing in prop_oneof![Just(None), any::<bool>().prop_map(Some)],
    ) {
        let spacing = spacing.map(|per_flow| Spacing { per_flow, ..Spacing::default() });
        let mut far_end = expander(spacing, marks.high);
        let mut link = Link::new(Method::Compaction(marks), 10_000, Some(&mut far_end), losses);
        link.run(start, stamped, &steps);
        for (offered, arrived) in link.streams() {
            no_more(offered, arrived)?;
            prop_assert!(arrived.len() <= offered.len());
        }
        let removed = link.queue.given_up().removed;
        prop_assert!(far_end.totals().regenerated <= removed);
    }

    #[test]
    fn the_filter_keeps_the_last_acknowledgment_and_all_other_packets(
        start: u32, stamped: bool, steps in steps(), aggressive: bool, losses in losses(),
    ) {
        let mut link = Link::new(Method::Filter { aggressive }, 10_000, None, vec![]);
        link.run(start, stamped, &steps);
        for (offered, arrived) in link.streams() {
            let (told, heard) = (learn(offered), learn(arrived));
            // CAKE removes duplicates as soon as a later one has more content.
            prop_assert_eq!(told.highest, heard.highest);
            prop_assert_eq!(told.other, heard.other);
            prop_assert_eq!(told.ece_changes, heard.ece_changes);
            prop_assert_eq!(told.window, heard.window);
            prop_assert_eq!(told.sacked, heard.sacked);
            no_more(offered, arrived)?;
        }
        let mut link = Link::new(Method::Filter { aggressive }, 10_000, None, losses);
        link.run(start, stamped, &steps);
        for (offered, arrived) in link.streams() {
            no_more(offered, arrived)?;
        }
    }

    #[test]
    fn reconstruction_only_adds_intermediate_acknowledgments(
        start: u32, stamped: bool, steps in steps(), marks in marks(),
        threshold in 0_u32..4000, most in 0_u16..300, capacity in 0_usize..300,
        losses in losses(),
    ) {
        let mut far_end = Reconstructor::new(ReconstructorSettings {
            threshold, most, capacity, flows: 2, ..ReconstructorSettings::default()
        });
        let method = Method::Suppression(marks);
        let mut link = Link::new(method, 10_000, Some(&mut far_end), vec![]);
        link.run(start, stamped, &steps);
        for (offered, arrived) in link.streams() {
            same(offered, arrived)?;
            no_more(offered, arrived)?;
        }
        // Two flows that share a table entry evict each other. A flow that starts again with stale
        // acknowledgments cannot be told from a thinned one.
        let stale = steps.iter().any(|(_, step)| matches!(step, Step::Stale(_)));
        let flows = 1 + usize::from(stale);
        let mut far_end = Reconstructor::new(ReconstructorSettings {
            threshold, most, capacity, flows, ..ReconstructorSettings::default()
        });
        let mut link = Link::new(method, 10_000, Some(&mut far_end), losses);
        link.run(start, stamped, &steps);
        for (offered, arrived) in link.streams() {
            no_more(offered, arrived)?;
        }
    }
}
