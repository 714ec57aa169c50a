//! Lexer with the rules of packetdrill's.

use super::error::ParseError;
use super::{Defines, LONGEST_SCRIPT};

/// A token.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    Word(String),
    Integer(i64),
    /// `0x...`.
    Hexadecimal(i64),
    /// A decimal fraction in billionths, and its text.
    Decimal(i64, String),
    Text(String),
    BackQuoted(String),
    /// `%{ ... }%`.
    Code(String),
    /// `--name`.
    Option(String),
    Ellipsis,
    Sign(char),
}

/// A token and its line.
pub(super) type Located = (Token, u32);

/// Resolution of decimal fractions.
const BILLION: i64 = 1_000_000_000;

pub(super) fn tokens(source: &str, defines: &Defines) -> Result<Vec<Located>, ParseError> {
    if source.len() > LONGEST_SCRIPT {
        return Err(ParseError::new(1, "the script is longer than 4 MiB"));
    }
    let mut lexer = Lexer {
        rest: source,
        line: 1,
        defines: defines.clone(),
        tokens: Vec::new(),
    };
    while lexer.next()? {}
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
    defines: Defines,
    tokens: Vec<Located>,
}

impl<'a> Lexer<'a> {
    /// Takes `length` bytes off the front.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        let lines = taken.bytes().filter(|&b| b == b'\n').count();
        self.line = self.line.saturating_add(lines as u32);
        taken
    }

    fn push(&mut self, token: Token, line: u32) {
        self.tokens.push((token, line));
    }

    fn next(&mut self) -> Result<bool, ParseError> {
        let line = self.line;
        let rest = self.rest;
        let Some(first) = rest.chars().next() else {
            return Ok(false);
        };
        if first.is_whitespace() {
            self.take(first.len_utf8());
        } else if rest.starts_with("//") {
            self.take(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.enclosed("/*", "*/", "comment")?;
        } else if rest.starts_with("%{") {
            let code = self.enclosed("%{", "}%", "code")?;
            self.push(Token::Code(code.trim_matches([' ', '\t']).to_owned()), line);
        } else if first == '"' || first == '`' {
            self.quoted(first)?;
        } else if rest.starts_with("...") {
            self.take(3);
            self.push(Token::Ellipsis, line);
        } else if let Some(name) = rest.strip_prefix("--").filter(|r| r.starts_with(is_word)) {
            let length = name.find(|c| !is_word(c)).unwrap_or(name.len());
            let name = &self.take(length + 2)[2..];
            self.push(Token::Option(name.to_owned()), line);
            self.definition(name);
        } else if let Some(length) = number_length(rest) {
            let text = self.take(length);
            // Digits that are no number form a word: 0102030405060708 may be a cookie.
            let blob = text.len() >= 4 && text.starts_with('0') && !text.contains('.');
            let token = if blob { None } else { number(text, line).ok() };
            let token = token.unwrap_or_else(|| Token::Word(text.to_owned()));
            self.push(token, line);
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let text = self.take(length);
            let token = self.word(text, line);
            self.push(token, line);
        } else {
            self.take(first.len_utf8());
            self.push(Token::Sign(first), line);
        }
        Ok(true)
    }

    fn enclosed(&mut self, open: &str, close: &str, what: &str) -> Result<&'a str, ParseError> {
        let inside = &self.rest[open.len()..];
        let Some(length) = inside.find(close) else {
            return Err(ParseError::new(self.line, format!("{what} without an end")));
        };
        let taken = self.take(open.len() + length + close.len());
        Ok(&taken[open.len()..open.len() + length])
    }

    fn quoted(&mut self, quote: char) -> Result<(), ParseError> {
        let line = self.line;
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find(|&(_, c)| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let Some((end, _)) = end else {
            let message = format!("a {quote} without its partner");
            return Err(ParseError::new(line, message));
        };
        let text = self.take(end + 1)[1..end].to_owned();
        let token = if quote == '"' {
            Token::Text(text)
        } else {
            Token::BackQuoted(text)
        };
        self.push(token, line);
        Ok(())
    }

    /// Applies `--define=NAME=VALUE`, valid from its line on.
    fn definition(&mut self, option: &str) {
        if option != "define" {
            return;
        }
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let mut parts = self.rest[..end].trim().splitn(3, '=');
        if let (Some(""), Some(name), Some(value)) = (parts.next(), parts.next(), parts.next()) {
            self.defines.insert(name.to_owned(), value.to_owned());
            // A definition is not a token.
            self.tokens.pop();
            self.take(end);
        }
    }

    /// Returns a word, or its definition, which is not expanded again.
    fn word(&self, text: &str, line: u32) -> Token {
        let Some(value) = self.defines.get(text) else {
            let hexadecimal = text.starts_with("0x").then(|| number(text, line).ok());
            return hexadecimal
                .flatten()
                .unwrap_or_else(|| Token::Word(text.to_owned()));
        };
        if let Some(inner) = value.strip_prefix('"') {
            return Token::Text(inner.trim_end_matches('"').to_owned());
        }
        if let Some(inner) = value.strip_prefix('`') {
            return Token::BackQuoted(inner.trim_end_matches('`').to_owned());
        }
        number(value, line).unwrap_or_else(|_| Token::Word(value.clone()))
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the length of the number at the start of `text`, unless a word there is longer.
fn number_length(text: &str) -> Option<usize> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let sign = text.len() - unsigned.len();
    let digits = |t: &str| t.find(|c: char| !c.is_ascii_digit()).unwrap_or(t.len());
    let whole = digits(unsigned);
    if let Some(fraction) = unsigned[whole..].strip_prefix('.') {
        let length = digits(fraction);
        if length > 0 {
            return Some(sign + whole + 1 + length);
        }
    }
    let word = unsigned.find(|c| !is_word(c)).unwrap_or(unsigned.len());
    (whole > 0 && whole == word).then_some(sign + whole)
}

fn number(text: &str, line: u32) -> Result<Token, ParseError> {
    let wrong = || ParseError::new(line, format!("not a number: {text}"));
    if let Some(digits) = text.strip_prefix("0x") {
        let value = i64::from_str_radix(digits, 16).map_err(|_| wrong())?;
        return Ok(Token::Hexadecimal(value));
    }
    let Some((whole, fraction)) = text.split_once('.') else {
        return text.parse().map(Token::Integer).map_err(|_| wrong());
    };
    let negative = whole.starts_with('-');
    let whole = whole.trim_start_matches('-');
    let whole: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| wrong())?
    };
    let mut billionths = 0;
    for (place, digit) in fraction.chars().take(9).enumerate() {
        let digit = digit.to_digit(10).ok_or_else(wrong)?;
        billionths += i64::from(digit) * BILLION / 10_i64.pow(place as u32 + 1);
    }
    let value = whole
        .checked_mul(BILLION)
        .and_then(|w| w.checked_add(billionths))
        .ok_or_else(wrong)?;
    let value = if negative { -value } else { value };
    Ok(Token::Decimal(value, text.to_owned()))
}
