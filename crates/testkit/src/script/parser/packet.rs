//! Segments.

use bentpipe_types::{Ecn, Flags};

use super::{ParseError, Parser, Token};
use crate::script::{Action, Direction, EcnSpec, OptionSpec, PacketSpec};

/// Maximum number of options in the 40 bytes of a TCP header.
const MOST_OPTIONS: usize = 40;

impl Parser {
    pub(super) fn packet(&mut self) -> Result<Action, ParseError> {
        let direction = if self.sign('<') {
            Direction::Inbound
        } else {
            self.expect_sign('>')?;
            Direction::Outbound
        };
        for (word, what) in [
            ("udp", "UDP"),
            ("gre", "GRE"),
            ("mpls", "MPLS"),
            ("ipv4", "packets in packets"),
            ("ipv6", "packets in packets"),
        ] {
            if self.keyword(word) {
                self.skip_event();
                return Ok(Action::Unsupported(what.to_owned()));
            }
        }
        let ecn = match self.ip_information()? {
            Ok(ecn) => ecn,
            Err(missing) => {
                self.skip_event();
                return Ok(Action::Unsupported(missing));
            }
        };
        if self.keyword("icmp") {
            return self.icmp(direction);
        }
        if self.keyword("encap") {
            self.skip_event();
            return Ok(Action::Unsupported("PSP".to_owned()));
        }
        let ports = match (self.peek(), self.peek_after(1)) {
            (Some(Token::Integer(_)), Some(Token::Sign('>'))) => {
                let source = self.integer("a port")?;
                self.expect_sign('>')?;
                Some((source, self.integer("a port")?))
            }
            _ => None,
        };
        let Some(flags) = self.flags()? else {
            self.skip_event();
            return Ok(Action::Unsupported("accurate ECN".to_owned()));
        };
        let (sequence, length) = self.sequence()?;
        let acknowledgment = if self.keyword("ack") {
            self.integer("an acknowledgment number")?
        } else {
            0
        };
        let window = if self.keyword("win") {
            Some(self.integer("a window")?)
        } else {
            None
        };
        let urgent = if self.keyword("urg") {
            self.integer("an urgent pointer")?
        } else {
            0
        };
        let options = match self.options()? {
            Ok(options) => options,
            Err(missing) => {
                self.skip_event();
                return Ok(Action::Unsupported(missing));
            }
        };
        if direction == Direction::Inbound && (options.is_none() || ecn == EcnSpec::Capable) {
            return self.error("what comes in to be said in full");
        }
        Ok(Action::Packet(PacketSpec {
            direction,
            ecn,
            ports,
            flags,
            sequence,
            length,
            acknowledgment,
            window,
            urgent,
            options,
        }))
    }

    /// Skips an unsupported event up to the next one: a time before an action.
    pub(super) fn skip_event(&mut self) {
        let line = self.line();
        while let Some((token, at)) = self.tokens.get(self.at) {
            let may_begin = matches!(
                token,
                Token::Sign('+' | '*')
                    | Token::Integer(_)
                    | Token::Decimal(..)
                    | Token::BackQuoted(_)
            );
            if *at > line && may_begin {
                return;
            }
            self.at += 1;
        }
    }

    /// Parses `[ect0]` and similar. The inner error names an unsupported item.
    fn ip_information(&mut self) -> Result<Result<EcnSpec, String>, ParseError> {
        let close = if self.sign('[') {
            ']'
        } else if self.sign('(') {
            ')'
        } else {
            return Ok(Ok(EcnSpec::Any));
        };
        let word = self.any_word("an ECN codepoint")?;
        let ecn = match word.as_str() {
            "noecn" => EcnSpec::Is(Ecn::NotCapable),
            "ect0" => EcnSpec::Is(Ecn::Capable0),
            "ect1" => EcnSpec::Is(Ecn::Capable1),
            "ce" => EcnSpec::Is(Ecn::Congestion),
            "ect01" => EcnSpec::Capable,
            "tos" | "flowlabel" | "ttl" => return Ok(Err(format!("the IP header's {word}"))),
            _ => {
                self.at -= 1;
                return self.error("an ECN codepoint");
            }
        };
        if self.sign(',') {
            return Ok(Err("the IP header's flow label".to_owned()));
        }
        self.expect_sign(close)?;
        Ok(Ok(ecn))
    }

    /// Parses `S`, `F.`, `.`, `-`. Returns `None` for `S.5`, which counts CE marks.
    fn flags(&mut self) -> Result<Option<Flags>, ParseError> {
        if self.sign('-') {
            return Ok(Some(Flags::NONE));
        }
        if self.sign('.') {
            return Ok(Some(Flags::ACK));
        }
        if let Some(Token::Decimal(..)) = self.peek() {
            return Ok(None);
        }
        let line = self.line();
        let word = self.any_word("flags")?;
        let mut flags = Flags::NONE;
        for letter in word.chars() {
            let flag = match letter {
                'F' => Flags::FIN,
                'S' => Flags::SYN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                'U' => Flags::URG,
                'E' => Flags::ECE,
                'W' => Flags::CWR,
                'A' => return Ok(None),
                _ => {
                    let message = format!("there is no flag {letter:?}");
                    return Err(ParseError::new(line, message));
                }
            };
            flags = flags.with(flag);
        }
        if let Some(Token::Decimal(..)) = self.peek() {
            return Ok(None);
        }
        if self.sign('.') {
            flags = flags.with(Flags::ACK);
        }
        Ok(Some(flags))
    }

    /// Parses `a:b(length)`.
    pub(super) fn sequence(&mut self) -> Result<(u32, u16), ParseError> {
        let start: u32 = self.integer("a sequence number")?;
        self.expect_sign(':')?;
        let end: u32 = self.integer("a sequence number")?;
        self.expect_sign('(')?;
        let length: u16 = self.integer("a length")?;
        self.expect_sign(')')?;
        if start.wrapping_add(u32::from(length)) != end {
            let message = format!("{start}:{end} is not {length} bytes");
            return Err(ParseError::new(self.line(), message));
        }
        Ok((start, length))
    }

    /// Parses the options, or `None` for `<...>`. The inner error names an unsupported item.
    #[allow(clippy::type_complexity)]
    fn options(&mut self) -> Result<Result<Option<Vec<OptionSpec>>, String>, ParseError> {
        if !self.sign('<') {
            return Ok(Ok(Some(Vec::new())));
        }
        if self.peek() == Some(&Token::Ellipsis) {
            self.at += 1;
            self.expect_sign('>')?;
            return Ok(Ok(None));
        }
        let mut options = Vec::new();
        loop {
            if self.keyword("ECN") {
                return Ok(Err("accurate ECN".to_owned()));
            }
            let option = self.tcp_option()?;
            options.push(option);
            if options.len() > MOST_OPTIONS {
                return self.error("fewer options");
            }
            if self.sign('>') {
                return Ok(Ok(Some(options)));
            }
            self.expect_sign(',')?;
        }
    }

    fn tcp_option(&mut self) -> Result<OptionSpec, ParseError> {
        let line = self.line();
        let name = self.any_word("a TCP option")?;
        Ok(match name.as_str() {
            "nop" => OptionSpec::Nop,
            "eol" => OptionSpec::End,
            "mss" => OptionSpec::MaximumSegmentSize(self.integer("an MSS")?),
            "wscale" => OptionSpec::WindowScale(self.integer("a shift")?),
            "sackOK" => OptionSpec::SackPermitted,
            "sack" => {
                let mut blocks = Vec::new();
                while let Some(Token::Integer(_)) = self.peek() {
                    let start = self.integer("a sequence number")?;
                    self.expect_sign(':')?;
                    blocks.push((start, self.integer("a sequence number")?));
                }
                if blocks.is_empty() || blocks.len() > 4 {
                    return Err(ParseError::new(line, "a SACK option has 1 to 4 blocks"));
                }
                OptionSpec::Sack(blocks)
            }
            "TS" => {
                if !self.keyword("val") {
                    return self.error("val");
                }
                let value = self.integer("a timestamp")?;
                if !self.keyword("ecr") {
                    return self.error("ecr");
                }
                OptionSpec::Timestamps(value, self.integer("a timestamp")?)
            }
            "FO" => OptionSpec::FastOpen(self.hexadecimal()?),
            "FOEXP" => OptionSpec::FastOpenExperimental(self.hexadecimal()?),
            "md5" => OptionSpec::Md5(self.hexadecimal()?),
            _ => {
                self.at -= 1;
                return self.error("a TCP option");
            }
        })
    }

    /// Parses bytes in hexadecimal; no digits give no bytes.
    fn hexadecimal(&mut self) -> Result<Vec<u8>, ParseError> {
        let line = self.line();
        let digits = match self.peek() {
            Some(Token::Word(word)) => word.clone(),
            Some(Token::Integer(number)) => number.to_string(),
            _ => return Ok(Vec::new()),
        };
        self.at += 1;
        let wrong = || ParseError::new(line, format!("{digits} is not bytes in hexadecimal"));
        if !digits.len().is_multiple_of(2) || digits.len() > 2 * MOST_OPTIONS || !digits.is_ascii()
        {
            return Err(wrong());
        }
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong());
        (0..digits.len()).step_by(2).map(byte).collect()
    }
}
