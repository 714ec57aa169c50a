//! ICMP errors: `icmp unreachable frag_needed mtu 1400 [1:1001(1000)]`.

use bentpipe_types::IcmpError;

use super::{ParseError, Parser};
use crate::script::{Action, Direction, IcmpSpec};

impl Parser {
    /// Parses the text after the word `icmp`.
    pub(super) fn icmp(&mut self, direction: Direction) -> Result<Action, ParseError> {
        let kind = self.any_word("an ICMP type")?;
        let code = match self.peek() {
            Some(super::Token::Word(word)) if word != "mtu" && word != "id" => {
                self.any_word("an ICMP code")?
            }
            _ => String::new(),
        };
        let mtu = if self.keyword("mtu") {
            Some(self.integer::<u32>("an MTU")?)
        } else {
            None
        };
        let sequence = if self.sign('[') {
            if !matches!(self.peek(), Some(super::Token::Integer(_))) {
                self.skip_event();
                let missing = "ICMP about what is no segment";
                return Ok(Action::Unsupported(missing.to_owned()));
            }
            let (start, _) = self.sequence()?;
            self.expect_sign(']')?;
            start
        } else {
            0
        };
        let error = error(&kind, &code, mtu.unwrap_or(0));
        let Some(error) = error.filter(|_| direction == Direction::Inbound) else {
            self.skip_event();
            return Ok(Action::Unsupported(format!("ICMP {kind} {code}")));
        };
        if mtu.is_some() && !matches!(error, IcmpError::TooBig { .. }) {
            return self.error("an MTU only where a packet is too big");
        }
        Ok(Action::Icmp(IcmpSpec { error, sequence }))
    }
}

/// Maps packetdrill's names as Linux does (icmp_err_convert).
fn error(kind: &str, code: &str, mtu: u32) -> Option<IcmpError> {
    Some(match (kind, code) {
        ("unreachable", "" | "net_unreachable" | "net_unreachable_for_tos" | "no_route") => {
            IcmpError::NetworkUnreachable
        }
        (
            "unreachable",
            "host_unreachable"
            | "host_unreachable_for_tos"
            | "host_unknown"
            | "source_host_isolated"
            | "address_unreachable"
            | "not_neighbour",
        ) => IcmpError::HostUnreachable,
        ("unreachable", "net_unknown") => IcmpError::NetworkUnreachable,
        ("unreachable", "protocol_unreachable") => IcmpError::ProtocolUnreachable,
        ("unreachable", "port_unreachable") => IcmpError::PortUnreachable,
        ("unreachable", "frag_needed") | ("packet_too_big", "") => IcmpError::TooBig { mtu },
        (
            "unreachable",
            "net_prohibited"
            | "host_prohibited"
            | "packet_filtered"
            | "precedence_violation"
            | "precedence_cutoff"
            | "admin_prohibited",
        ) => IcmpError::Prohibited,
        ("time_exceeded", _) => IcmpError::TimeExceeded,
        ("parameter_problem", _) => IcmpError::ParameterProblem,
        _ => return None,
    })
}
