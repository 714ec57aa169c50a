//! The subset of Python used in assertions: assignments, `assert`, `print` and expressions.
//!
//! Expressions are evaluated while they are parsed, so nothing is nested on the heap; their depth
//! is bounded.

mod fault;
mod lexer;
mod operators;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;

use lexer::{Located, Token, tokens};

pub use fault::Fault;
pub use value::Value;

/// Names and their values.
pub type Names = BTreeMap<String, Value>;

/// Maximum nesting depth.
const DEEPEST: u32 = 64;

/// Runs `code`. `known` names are predefined; `assigned` names are the script's own, kept between
/// pieces of code. Printed text is discarded.
///
/// # Errors
///
/// Returns the first failed assertion or error.
pub fn run(code: &str, known: &Names, assigned: &mut Names) -> Result<(), Fault> {
    let tokens = tokens(code)?;
    let mut machine = Machine {
        code,
        tokens: &tokens,
        at: 0,
        known,
        assigned,
        depth: 0,
        skipping: 0,
        mentioned: Vec::new(),
    };
    while machine.at < machine.tokens.len() {
        machine.statement()?;
    }
    Ok(())
}

struct Machine<'a> {
    code: &'a str,
    tokens: &'a [Located],
    at: usize,
    known: &'a Names,
    assigned: &'a mut Names,
    depth: u32,
    // Depth of operands that Python would not evaluate.
    skipping: u32,
    // Names that were read, with their values.
    mentioned: Vec<(String, Value)>,
}

impl Machine<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|located| &located.token)
    }

    fn line(&self) -> u32 {
        let here = self.tokens.get(self.at).or(self.tokens.last());
        here.map_or(0, |located| located.line)
    }

    fn take(&mut self, sign: &str) -> bool {
        let here = matches!(self.peek(), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(here);
        here
    }

    fn word(&mut self, word: &str) -> bool {
        let here = matches!(self.peek(), Some(Token::Name(n)) if n == word);
        self.at += usize::from(here);
        here
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::Error {
            line: self.line(),
            message: message.into(),
        })
    }

    fn expect(&mut self, sign: &str) -> Result<(), Fault> {
        if self.take(sign) {
            return Ok(());
        }
        self.error(format!("expected {sign:?}"))
    }

    fn statement(&mut self) -> Result<(), Fault> {
        if matches!(self.peek(), Some(Token::End)) {
            self.at += 1;
            return Ok(());
        }
        if self.word("assert") {
            self.assertion()?;
        } else if let Some(Token::Name(name)) = self.peek() {
            let name = name.clone();
            if is_statement(&name) {
                return Err(Fault::Unsupported {
                    line: self.line(),
                    message: format!("Python's \"{name}\""),
                });
            }
            match self.tokens.get(self.at + 1).map(|l| &l.token) {
                Some(Token::Sign("=")) => {
                    self.at += 2;
                    let value = self.expression()?;
                    self.assigned.insert(name, value);
                }
                Some(Token::Augmented(operator)) => {
                    let operator = *operator;
                    self.at += 2;
                    let Some(before) = self.assigned.get(&name).cloned() else {
                        return self.error(format!("{name} has no value"));
                    };
                    let by = self.expression()?;
                    let value = self.apply(operator, before, by)?;
                    self.assigned.insert(name, value);
                }
                _ => {
                    self.tuple()?;
                }
            }
        } else {
            self.tuple()?;
        }
        match self.peek() {
            None => Ok(()),
            Some(Token::End) => {
                self.at += 1;
                Ok(())
            }
            _ => self.error("the statement goes on where it should end"),
        }
    }

    fn assertion(&mut self) -> Result<(), Fault> {
        let line = self.line();
        let first = self.at;
        self.mentioned.clear();
        let holds = self.expression()?.is_true();
        let mut got: Vec<String> = Vec::new();
        for (name, value) in &self.mentioned {
            let shown = format!("{name} is {}", value.show());
            if !got.contains(&shown) {
                got.push(shown);
            }
        }
        let text = match (self.tokens.get(first), self.tokens.get(self.at.max(1) - 1)) {
            (Some(from), Some(to)) if from.start < to.end => &self.code[from.start..to.end],
            _ => "",
        };
        if self.take(",") {
            self.mentioned.clear();
            let names_only = self.peek().is_some_and(|t| matches!(t, Token::Name(_)));
            // Python evaluates the message only if the assertion fails.
            self.skipping += u32::from(holds);
            let message = self.expression();
            self.skipping -= u32::from(holds);
            let message = message?;
            if !names_only && !holds {
                got.push(message.text());
            }
        }
        if holds {
            return Ok(());
        }
        Err(Fault::Assertion {
            line,
            expected: text.split_whitespace().collect::<Vec<_>>().join(" "),
            got: got.join(", "),
        })
    }

    /// Parses an expression, or several separated by commas.
    fn tuple(&mut self) -> Result<Value, Fault> {
        let first = self.expression()?;
        if !self.take(",") {
            return Ok(first);
        }
        let mut all = vec![first];
        while !matches!(self.peek(), None | Some(Token::End | Token::Sign(")"))) {
            all.push(self.expression()?);
            if !self.take(",") {
                break;
            }
        }
        Ok(Value::Tuple(all))
    }
}

/// Whether the word begins a statement that is not implemented.
fn is_statement(word: &str) -> bool {
    const WORDS: [&str; 14] = [
        "import", "from", "if", "for", "while", "def", "class", "return", "try", "with", "del",
        "raise", "global", "lambda",
    ];
    WORDS.contains(&word)
}
