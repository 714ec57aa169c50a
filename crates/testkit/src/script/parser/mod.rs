//! Recursive-descent parser of scripts.

mod call;
mod icmp;
mod packet;

use super::error::ParseError;
use super::lexer::{Located, Token, tokens};
use super::{Action, Defines, Event, Script, ScriptOption, When};

/// Maximum time in nanoseconds: three days, the range of the simulated clock.
const LAST: i64 = 250_000 * SECOND;
const SECOND: i64 = 1_000_000_000;

/// Parses a script. `defines` are predefined; the script's own definitions take precedence.
///
/// # Errors
///
/// Returns the first syntax error with its line.
pub fn parse(source: &str, defines: &Defines) -> Result<Script, ParseError> {
    let tokens = tokens(source, defines)?;
    let mut parser = Parser { tokens, at: 0 };
    parser.script()
}

struct Parser {
    tokens: Vec<Located>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.peek_after(0)
    }

    fn peek_after(&self, count: usize) -> Option<&Token> {
        self.tokens.get(self.at + count).map(|(token, _)| token)
    }

    fn line(&self) -> u32 {
        let last = self.tokens.last();
        self.tokens.get(self.at).or(last).map_or(1, |(_, l)| *l)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at)?.0.clone();
        self.at += 1;
        Some(token)
    }

    fn error<T>(&self, expected: &str) -> Result<T, ParseError> {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(Token::Word(w)) => format!("\"{w}\""),
            Some(Token::Integer(n) | Token::Hexadecimal(n)) => n.to_string(),
            Some(Token::Decimal(_, text)) => text.clone(),
            Some(Token::Text(t)) => format!("the text {t:?}"),
            Some(Token::BackQuoted(_)) => "a command".to_owned(),
            Some(Token::Code(_)) => "code".to_owned(),
            Some(Token::Option(name)) => format!("--{name}"),
            Some(Token::Ellipsis) => "...".to_owned(),
            Some(Token::Sign(c)) => format!("{c:?}"),
        };
        let message = format!("expected {expected}, found {found}");
        Err(ParseError::new(self.line(), message))
    }

    fn is_sign(&self, sign: char) -> bool {
        self.peek() == Some(&Token::Sign(sign))
    }

    /// Takes this sign if it is next.
    fn sign(&mut self, sign: char) -> bool {
        let here = self.is_sign(sign);
        self.at += usize::from(here);
        here
    }

    fn expect_sign(&mut self, sign: char) -> Result<(), ParseError> {
        if self.sign(sign) {
            return Ok(());
        }
        self.error(&format!("{sign:?}"))
    }

    /// Takes this word if it is next.
    fn keyword(&mut self, word: &str) -> bool {
        let here = matches!(self.peek(), Some(Token::Word(w)) if w == word);
        self.at += usize::from(here);
        here
    }

    fn any_word(&mut self, expected: &str) -> Result<String, ParseError> {
        if let Some(Token::Word(word)) = self.peek() {
            let word = word.clone();
            self.at += 1;
            return Ok(word);
        }
        self.error(expected)
    }

    /// Parses an integer of this type.
    fn integer<T: TryFrom<i64>>(&mut self, expected: &str) -> Result<T, ParseError> {
        if let Some(Token::Integer(n) | Token::Hexadecimal(n)) = self.peek() {
            let n = *n;
            let Ok(value) = T::try_from(n) else {
                let message = format!("{n} is out of range for {expected}");
                return Err(ParseError::new(self.line(), message));
            };
            self.at += 1;
            return Ok(value);
        }
        self.error(expected)
    }

    fn script(&mut self) -> Result<Script, ParseError> {
        let mut script = Script::default();
        while let Some(Token::Option(name)) = self.peek() {
            let name = name.clone();
            let line = self.line();
            self.at += 1;
            let value = if self.sign('=') {
                Some(self.option_value()?)
            } else {
                None
            };
            script.options.push(ScriptOption { line, name, value });
        }
        while let Some(token) = self.peek() {
            let line = self.line();
            if let Token::BackQuoted(command) = token {
                script.commands.push((line, command.clone()));
                self.at += 1;
                continue;
            }
            let event = self.event()?;
            script.events.push(event);
        }
        Ok(script)
    }

    /// Parses the text after `--name=` on its line: `v4.3`, `192.168.0.1` and `fd::1` are several
    /// tokens.
    fn option_value(&mut self) -> Result<String, ParseError> {
        let line = self.line();
        let mut value = String::new();
        while let Some((token, at)) = self.tokens.get(self.at)
            && *at == line
        {
            match token {
                Token::Word(text) | Token::Text(text) | Token::Decimal(_, text) => {
                    value.push_str(text);
                }
                Token::Integer(n) => value.push_str(&n.to_string()),
                Token::Hexadecimal(n) => value.push_str(&format!("{n:#x}")),
                Token::Sign(sign @ ('.' | ':' | '=' | '/' | '-' | ',')) => value.push(*sign),
                _ => break,
            }
            self.at += 1;
        }
        if value.is_empty() {
            return self.error("the option's value");
        }
        Ok(value)
    }

    fn event(&mut self) -> Result<Event, ParseError> {
        let line = self.line();
        let time = self.when()?;
        let outbound = self.is_sign('>');
        let action = self.action()?;
        let range = matches!(time, When::AbsoluteRange(..) | When::RelativeRange(..));
        if (range || time == When::Any) && !outbound {
            let message = "only an outbound packet has a range of times";
            return Err(ParseError::new(line, message));
        }
        Ok(Event { line, time, action })
    }

    fn action(&mut self) -> Result<Action, ParseError> {
        match self.peek() {
            Some(Token::Sign('<' | '>')) => self.packet(),
            Some(Token::BackQuoted(command)) => {
                let command = command.clone();
                self.at += 1;
                Ok(Action::Command(command))
            }
            Some(Token::Code(code)) => {
                let code = code.clone();
                self.at += 1;
                Ok(Action::Code(code))
            }
            Some(Token::Word(_) | Token::Ellipsis) => self.call().map(Action::Call),
            _ => self.error("a packet, a system call, a command or code"),
        }
    }

    fn when(&mut self) -> Result<When, ParseError> {
        if self.sign('*') {
            return Ok(When::Any);
        }
        let relative = self.sign('+');
        let from = self.time()?;
        if !self.sign('~') {
            return Ok(if relative {
                When::Relative(from)
            } else {
                When::Absolute(from)
            });
        }
        if relative {
            self.expect_sign('+')?;
        }
        let to = self.time()?;
        if to < from {
            return Err(ParseError::new(self.line(), "a range that goes backwards"));
        }
        Ok(if relative {
            When::RelativeRange(from, to)
        } else {
            When::AbsoluteRange(from, to)
        })
    }

    /// Parses seconds and returns nanoseconds.
    fn time(&mut self) -> Result<u64, ParseError> {
        let nanoseconds = match self.peek() {
            Some(Token::Integer(seconds)) => seconds.saturating_mul(SECOND),
            Some(Token::Decimal(nanoseconds, _)) => *nanoseconds,
            _ => return self.error("a time"),
        };
        match u64::try_from(nanoseconds) {
            Ok(time) if nanoseconds <= LAST => {
                self.at += 1;
                Ok(time)
            }
            _ => Err(ParseError::new(self.line(), "a time out of range")),
        }
    }
}
