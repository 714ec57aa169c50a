//! Comparison of expected and actual packets.

use std::fmt::Write;

use bentpipe_types::{Ecn, Flags, Span, Time};

use super::segment::Sent;
use super::{BEGINNING, Problem, Runner};
use crate::script::{EcnSpec, OptionSpec, PacketSpec};

impl Runner {
    /// Checks that the next segment is this one, sent between `from` and `to` within the tolerance.
    pub(super) fn expect_packet(
        &mut self,
        spec: &PacketSpec,
        from: Time,
        to: Time,
    ) -> Result<(), Problem> {
        self.expect_syn(spec);
        let mut whole: Option<Sent> = None;
        loop {
            let Some(next) = self.next_sent(spec, from, to)? else {
                let got = match whole {
                    Some(part) => format!("only {} bytes of it", part.length),
                    None => "nothing by then".to_owned(),
                };
                return Err(Problem::wrong(show(spec, from), got));
            };
            whole = Some(match whole {
                None => next,
                Some(part) => joined(part, next)
                    .map_err(|(part, next)| self.apart(spec, from, &part, &next))?,
            });
            let Some(sent) = &whole else { break };
            let wanted = u32::from(spec.length);
            if sent.length >= wanted || self.setup.strict_segments {
                break;
            }
        }
        let Some(sent) = whole else { return Ok(()) };
        let shown = self.in_script(&sent, spec);
        self.compare(spec, &shown, from, to)
    }

    /// Returns the next segment of the connection, if one is sent in time.
    fn next_sent(
        &mut self,
        spec: &PacketSpec,
        from: Time,
        to: Time,
    ) -> Result<Option<Sent>, Problem> {
        let last = (to + self.tolerance(from)).max(self.host.world.now);
        loop {
            while let Some(sent) = self.sent.pop_front() {
                let opens = spec.flags.has(Flags::SYN) && sent.flags.has(Flags::SYN);
                if sent.source == self.flow.local && sent.destination == self.flow.remote || opens {
                    return Ok(Some(sent));
                }
            }
            match self.next_deadline() {
                Some(deadline) if deadline <= last => self.step(deadline)?,
                _ => {
                    self.advance(last)?;
                    return Ok(None);
                }
            }
        }
    }

    /// Returns packetdrill's tolerance: a constant, or a share of the time since the last event.
    fn tolerance(&self, at: Time) -> Span {
        let since = at.since(self.previous.min(at));
        self.setup.tolerance_around(since)
    }

    fn apart(&mut self, spec: &PacketSpec, from: Time, part: &Sent, next: &Sent) -> Problem {
        let (part, next) = (self.in_script(part, spec), self.in_script(next, spec));
        let got = format!("{} and then {}", describe(&part), describe(&next));
        Problem::wrong(show(spec, from), got)
    }

    fn compare(&self, spec: &PacketSpec, sent: &Sent, from: Time, to: Time) -> Result<(), Problem> {
        let mut flags = sent.flags;
        // Linux sets PSH on every buffer of several segments, for the receiver's offload (commit
        // 051ba67447de), and on the end of half a window of data. A missing PSH is accepted there;
        // an unexpected one is an error.
        let full = sent.segments > 1 || sent.length >= self.full_segment();
        if full && spec.flags.has(Flags::PSH) {
            flags = flags.with(Flags::PSH);
        }
        let ecn = match spec.ecn {
            EcnSpec::Any => true,
            EcnSpec::Is(ecn) => ecn == sent.ecn,
            EcnSpec::Capable => matches!(sent.ecn, Ecn::Capable0 | Ecn::Capable1),
        };
        let acknowledgment =
            !spec.flags.has(Flags::ACK) || spec.acknowledgment == sent.acknowledgment.get();
        let same = ecn
            && flags == spec.flags
            && sent.sequence.get() == spec.sequence
            && sent.length == u32::from(spec.length)
            && acknowledgment
            && spec.window.is_none_or(|w| w == sent.window)
            && spec.urgent == 0
            && self.same_options(spec, sent);
        let slack = self.tolerance(from);
        let early = sent.at + slack < from;
        let late = sent.at > to + slack;
        if same && !early && !late {
            return Ok(());
        }
        Err(Problem::wrong(show(spec, from), describe(sent)))
    }

    /// Returns the payload length of a full segment.
    fn full_segment(&self) -> u32 {
        self.current().map_or(u32::MAX, |conversation| {
            self.host.connection(conversation).segment_size()
        })
    }

    fn same_options(&self, spec: &PacketSpec, sent: &Sent) -> bool {
        let Some(expected) = &spec.options else {
            return true;
        };
        // One expected packet was sent as several: the options of the last one are compared.
        expected.len() == sent.options.len()
            && expected.iter().zip(&sent.options).all(|pair| match pair {
                (OptionSpec::Timestamps(a, echo_a), OptionSpec::Timestamps(b, echo_b)) => {
                    echo_a == echo_b && self.same_timestamp(*a, *b)
                }
                (a, b) => a == b,
            })
    }

    /// Whether timestamps are equal. packetdrill compares values only if the tick length is
    /// configured.
    fn same_timestamp(&self, a: u32, b: u32) -> bool {
        let Some(tick) = self.setup.timestamp_tick else {
            return true;
        };
        let apart = u64::from((a.wrapping_sub(b) as i32).unsigned_abs());
        let since = self.host.world.now.since(BEGINNING);
        tick * apart <= self.setup.tolerance_around(since)
    }
}

/// Merges two consecutive segments, as segmentation offload would send them.
fn joined(part: Sent, next: Sent) -> Result<Sent, (Sent, Sent)> {
    let kept = Flags::SYN.with(Flags::RST).with(Flags::URG);
    let follows = next.sequence == part.sequence + part.length
        && next.acknowledgment == part.acknowledgment
        && part.length > 0
        && next.length > 0
        && !part.flags.has(kept)
        && !next.flags.has(kept)
        && !part.flags.has(Flags::FIN)
        && part.ecn == next.ecn
        && next.source == part.source
        && next.destination == part.destination;
    if !follows {
        return Err((part, next));
    }
    Ok(Sent {
        sequence: part.sequence,
        length: part.length + next.length,
        segments: part.segments + 1,
        flags: if part.flags.has(Flags::CWR) {
            next.flags.with(Flags::CWR)
        } else {
            next.flags
        },
        ..next
    })
}

fn seconds(time: Time) -> String {
    format!("{:.6} s", time.since(BEGINNING).as_secs_f64())
}

fn show(spec: &PacketSpec, from: Time) -> String {
    let mut text = String::new();
    let ecn = match spec.ecn {
        EcnSpec::Any => String::new(),
        EcnSpec::Is(ecn) => format!("[{}] ", ecn_name(ecn)),
        EcnSpec::Capable => "[ect01] ".to_owned(),
    };
    let end = spec.sequence.wrapping_add(u32::from(spec.length));
    let _ = write!(
        text,
        "{ecn}{} {}:{end}({})",
        flags_name(spec.flags),
        spec.sequence,
        spec.length
    );
    if spec.flags.has(Flags::ACK) {
        let _ = write!(text, " ack {}", spec.acknowledgment);
    }
    if let Some(window) = spec.window {
        let _ = write!(text, " win {window}");
    }
    match &spec.options {
        None => text.push_str(" <...>"),
        Some(options) => text.push_str(&options_name(options)),
    }
    let _ = write!(text, " at {}", seconds(from));
    text
}

fn describe(sent: &Sent) -> String {
    let mut text = String::new();
    if sent.ecn != Ecn::NotCapable {
        let _ = write!(text, "[{}] ", ecn_name(sent.ecn));
    }
    let _ = write!(
        text,
        "{} {}:{}({})",
        flags_name(sent.flags),
        sent.sequence.get(),
        sent.sequence.get().wrapping_add(sent.length),
        sent.length
    );
    if sent.flags.has(Flags::ACK) {
        let _ = write!(text, " ack {}", sent.acknowledgment.get());
    }
    let _ = write!(text, " win {}", sent.window);
    text.push_str(&options_name(&sent.options));
    let _ = write!(text, " at {}", seconds(sent.at));
    text
}

fn ecn_name(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotCapable => "noecn",
        Ecn::Capable0 => "ect0",
        Ecn::Capable1 => "ect1",
        Ecn::Congestion => "ce",
    }
}

fn flags_name(flags: Flags) -> String {
    if flags == Flags::NONE {
        return "-".to_owned();
    }
    let letters = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::URG, 'U'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::ACK, '.'),
    ];
    let set = letters.iter().filter(|(flag, _)| flags.has(*flag));
    set.map(|(_, letter)| letter).collect()
}

fn options_name(options: &[OptionSpec]) -> String {
    if options.is_empty() {
        return String::new();
    }
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let names: Vec<String> = options
        .iter()
        .map(|option| match option {
            OptionSpec::Nop => "nop".to_owned(),
            OptionSpec::End => "eol".to_owned(),
            OptionSpec::MaximumSegmentSize(size) => format!("mss {size}"),
            OptionSpec::WindowScale(shift) => format!("wscale {shift}"),
            OptionSpec::SackPermitted => "sackOK".to_owned(),
            OptionSpec::Sack(blocks) => {
                let blocks = blocks.iter().map(|(a, b)| format!(" {a}:{b}"));
                format!("sack{}", blocks.collect::<String>())
            }
            OptionSpec::Timestamps(value, echo) => format!("TS val {value} ecr {echo}"),
            OptionSpec::FastOpen(cookie) => format!("FO {}", hexadecimal(cookie)),
            OptionSpec::FastOpenExperimental(cookie) => format!("FOEXP {}", hexadecimal(cookie)),
            OptionSpec::Md5(digest) => format!("md5 {}", hexadecimal(digest)),
        })
        .collect();
    format!(" <{}>", names.join(","))
}
