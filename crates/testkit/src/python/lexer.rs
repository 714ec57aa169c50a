//! Python tokens. Line ends terminate statements, except within brackets and after a backslash.

use super::Fault;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    Name(String),
    Integer(i128),
    Float(f64),
    Text(String),
    Sign(&'static str),
    /// `+=` and the like: the operator.
    Augmented(&'static str),
    /// The end of a statement.
    End,
}

/// A token with its offset in the code and its line.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Located {
    pub(super) token: Token,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) line: u32,
}

/// Operators, longest first.
const SIGNS: [&str; 29] = [
    "<<", ">>", "<=", ">=", "==", "!=", "**", "//", "<", ">", "=", "+", "-", "*", "/", "%", "&",
    "|", "^", "~", "(", ")", "[", "]", ",", ".", "{", "}", ":",
];
const AUGMENTED: [&str; 9] = ["+", "-", "*", "//", "/", "%", "&", "|", "^"];

pub(super) fn tokens(code: &str) -> Result<Vec<Located>, Fault> {
    let mut tokens: Vec<Located> = Vec::new();
    let mut at = 0;
    let mut line = 0;
    let mut brackets = 0_u32;
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        let start = at;
        let mut length = first.len_utf8();
        let mut token = None;
        match first {
            '\n' => {
                if brackets == 0 {
                    token = Some(Token::End);
                }
            }
            ';' => token = Some(Token::End),
            '\\' if rest.starts_with("\\\n") => length = 2,
            '#' => length = rest.find('\n').unwrap_or(rest.len()),
            '\'' | '"' => {
                let Some((text, taken)) = string(rest, first) else {
                    let message = "a string without an end".to_owned();
                    return Err(Fault::Error { line, message });
                };
                token = Some(Token::Text(text));
                length = taken;
            }
            c if c.is_whitespace() => {}
            c if c.is_alphabetic() || c == '_' => {
                let is_name = |c: char| c.is_alphanumeric() || c == '_';
                length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                token = Some(Token::Name(rest[..length].to_owned()));
            }
            c if c.is_ascii_digit() || c == '.' && starts_with_digit(&rest[1..]) => {
                let (number, taken) = number(rest, line)?;
                token = Some(number);
                length = taken;
            }
            _ => {
                let augmented = AUGMENTED.iter().find(|sign| {
                    rest.strip_prefix(**sign)
                        .is_some_and(|r| r.starts_with('=') && !r.starts_with("=="))
                });
                if let Some(sign) = augmented {
                    token = Some(Token::Augmented(sign));
                    length = sign.len() + 1;
                } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                    match *sign {
                        "(" | "[" | "{" => brackets += 1,
                        ")" | "]" | "}" => brackets = brackets.saturating_sub(1),
                        _ => {}
                    }
                    token = Some(Token::Sign(sign));
                    length = sign.len();
                } else {
                    let message = format!("{first:?} is no Python");
                    return Err(Fault::Error { line, message });
                }
            }
        }
        at += length;
        if let Some(token) = token {
            tokens.push(Located {
                token,
                start,
                end: at,
                line,
            });
        }
        line += code[start..at].bytes().filter(|&b| b == b'\n').count() as u32;
    }
    Ok(tokens)
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns a quoted string and its length including the quotes.
fn string(rest: &str, quote: char) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => match characters.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                other => text.push(other),
            },
            '\n' => return None,
            c if c == quote => return Some((text, at + 1)),
            c => text.push(c),
        }
    }
    None
}

fn number(rest: &str, line: u32) -> Result<(Token, usize), Fault> {
    let wrong = |text: &str| Fault::Error {
        line,
        message: format!("{text} is no number"),
    };
    if let Some(digits) = rest.strip_prefix("0x") {
        let length = digits
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(digits.len());
        let value = i128::from_str_radix(&digits[..length], 16);
        let value = value.map_err(|_| wrong(&rest[..length + 2]))?;
        return Ok((Token::Integer(value), length + 2));
    }
    let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
    let mut length = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
    if rest[length..].starts_with(['e', 'E']) {
        let exponent = &rest[length + 1..];
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let digits = exponent[sign..]
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(exponent.len() - sign);
        if digits > 0 {
            length += 1 + sign + digits;
        }
    }
    let text = rest[..length].replace('_', "");
    let token = if text.contains(['.', 'e', 'E']) {
        text.parse().map(Token::Float).map_err(|_| wrong(&text))?
    } else {
        text.parse().map(Token::Integer).map_err(|_| wrong(&text))?
    };
    Ok((token, length))
}
