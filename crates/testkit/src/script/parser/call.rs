//! System calls and their arguments.

use super::{ParseError, Parser, Token};
use crate::script::{CallSpec, Expression};

/// Maximum nesting depth of arguments; public scripts reach 6.
const DEEPEST: u32 = 32;

impl Parser {
    pub(super) fn call(&mut self) -> Result<CallSpec, ParseError> {
        let until = if self.peek() == Some(&Token::Ellipsis) {
            self.at += 1;
            Some(self.time()?)
        } else {
            None
        };
        let name = self.any_word("a system call")?;
        self.expect_sign('(')?;
        let arguments = self.list(')', 0)?;
        self.expect_sign('=')?;
        let result = self.expression(0)?;
        let errno = match self.peek() {
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Some(word)
            }
            _ => None,
        };
        self.note()?;
        Ok(CallSpec {
            until,
            name,
            arguments,
            result,
            errno,
        })
    }

    /// Skips an explanation such as `(Connection refused)`.
    fn note(&mut self) -> Result<(), ParseError> {
        if !self.sign('(') {
            return Ok(());
        }
        while !self.sign(')') {
            if self.next().is_none() {
                return self.error("')'");
            }
        }
        Ok(())
    }

    /// Parses expressions up to and including `close`.
    fn list(&mut self, close: char, depth: u32) -> Result<Vec<Expression>, ParseError> {
        let mut list = Vec::new();
        if self.sign(close) {
            return Ok(list);
        }
        loop {
            list.push(self.expression(depth + 1)?);
            if self.sign(close) {
                return Ok(list);
            }
            self.expect_sign(',')?;
        }
    }

    fn expression(&mut self, depth: u32) -> Result<Expression, ParseError> {
        let first = self.operand(depth)?;
        if !self.is_sign('|') {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.sign('|') {
            all.push(self.operand(depth + 1)?);
        }
        Ok(Expression::Or(all))
    }

    fn operand(&mut self, depth: u32) -> Result<Expression, ParseError> {
        if depth > DEEPEST {
            return Err(ParseError::new(self.line(), "nested too deeply"));
        }
        match self.peek() {
            Some(Token::Ellipsis) => {
                self.at += 1;
                Ok(Expression::Ellipsis)
            }
            Some(Token::Integer(n) | Token::Hexadecimal(n)) => {
                let n = *n;
                self.at += 1;
                Ok(Expression::Integer(n))
            }
            Some(Token::Text(_)) => Ok(self.text()),
            Some(Token::Sign('[')) => {
                self.at += 1;
                self.list(']', depth).map(Expression::List)
            }
            Some(Token::Sign('{')) => {
                self.at += 1;
                self.fields(depth).map(Expression::Fields)
            }
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                if self.sign('(') {
                    return Ok(Expression::Apply(word, self.list(')', depth)?));
                }
                if self.sign('=') {
                    // In u32=1 outside braces the name is a comment.
                    return self.expression(depth + 1);
                }
                Ok(Expression::Word(word))
            }
            _ => self.error("an argument"),
        }
    }

    /// Joins consecutive texts. Text replaced by an ellipsis is not compared.
    fn text(&mut self) -> Expression {
        let mut whole = String::new();
        while let Some(Token::Text(text)) = self.peek() {
            whole.push_str(text);
            self.at += 1;
        }
        if self.peek() == Some(&Token::Ellipsis) {
            self.at += 1;
        }
        Expression::Text(whole)
    }

    /// Parses `name=value`, `name(n)=value` or a value, up to the closing brace.
    fn fields(&mut self, depth: u32) -> Result<Vec<(Option<String>, Expression)>, ParseError> {
        let mut fields = Vec::new();
        if self.sign('}') {
            return Ok(fields);
        }
        loop {
            let name = self.field_name(depth)?;
            fields.push((name, self.expression(depth + 1)?));
            if self.sign('}') {
                return Ok(fields);
            }
            self.expect_sign(',')?;
        }
    }

    fn field_name(&mut self, depth: u32) -> Result<Option<String>, ParseError> {
        let Some(Token::Word(word)) = self.peek() else {
            return Ok(None);
        };
        let word = word.clone();
        match self.peek_after(1) {
            Some(Token::Sign('=')) => {
                self.at += 2;
                Ok(Some(word))
            }
            Some(Token::Sign('(')) if word.starts_with("msg_") => {
                self.at += 2;
                self.list(')', depth)?;
                self.expect_sign('=')?;
                Ok(Some(word))
            }
            _ => Ok(None),
        }
    }
}
