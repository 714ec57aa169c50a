//! Expressions with Python's precedence, evaluated while they are parsed.

use super::{DEEPEST, Fault, Machine, Token, Value};

impl Machine<'_> {
    pub(super) fn expression(&mut self) -> Result<Value, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.error("nested too deeply");
        }
        let value = self.disjunction();
        self.depth -= 1;
        value
    }

    fn disjunction(&mut self) -> Result<Value, Fault> {
        let mut value = self.conjunction()?;
        while self.word("or") {
            let decided = value.is_true();
            self.skipping += u32::from(decided);
            let right = self.conjunction();
            self.skipping -= u32::from(decided);
            let right = right?;
            if !decided {
                value = right;
            }
        }
        Ok(value)
    }

    fn conjunction(&mut self) -> Result<Value, Fault> {
        let mut value = self.negation()?;
        while self.word("and") {
            let decided = !value.is_true();
            self.skipping += u32::from(decided);
            let right = self.negation();
            self.skipping -= u32::from(decided);
            let right = right?;
            if !decided {
                value = right;
            }
        }
        Ok(value)
    }

    fn negation(&mut self) -> Result<Value, Fault> {
        let mut times = 0;
        while self.word("not") {
            times += 1;
        }
        let value = self.comparison()?;
        Ok(match times {
            0 => value,
            n => Value::Bool(value.is_true() ^ (n % 2 == 1)),
        })
    }

    /// `a < b <= c` compares each with the next.
    fn comparison(&mut self) -> Result<Value, Fault> {
        let mut left = self.binary(0)?;
        let mut truth = None;
        while let Some(Token::Sign(sign @ ("<" | ">" | "<=" | ">=" | "==" | "!="))) = self.peek() {
            let sign = *sign;
            self.at += 1;
            let right = self.binary(0)?;
            let holds = self.skipping > 0 || self.compare(sign, &left, &right)?;
            truth = Some(truth.unwrap_or(true) && holds);
            left = right;
        }
        Ok(truth.map_or(left, Value::Bool))
    }

    fn compare(&self, sign: &str, left: &Value, right: &Value) -> Result<bool, Fault> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let order = match (left.integer(), right.integer()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => match (left, right) {
                (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
                _ => match (left.float(), right.float()) {
                    (Some(a), Some(b)) => a.partial_cmp(&b),
                    _ if sign == "==" => return Ok(left == right),
                    _ if sign == "!=" => return Ok(left != right),
                    _ => {
                        let (a, b) = (left.show(), right.show());
                        return self.error(format!("{a} {sign} {b} can't be compared"));
                    }
                },
            },
        };
        Ok(match sign {
            "<" => order == Some(Less),
            ">" => order == Some(Greater),
            "<=" => matches!(order, Some(Less | Equal)),
            ">=" => matches!(order, Some(Greater | Equal)),
            "==" => order == Some(Equal),
            _ => order != Some(Equal),
        })
    }

    /// Parses the operators that bind more tightly than comparisons, from `|` (level 0) on.
    fn binary(&mut self, level: usize) -> Result<Value, Fault> {
        const LEVELS: [&[&str]; 6] = [
            &["|"],
            &["^"],
            &["&"],
            &["<<", ">>"],
            &["+", "-"],
            &["*", "/", "//", "%"],
        ];
        let Some(signs) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut value = self.binary(level + 1)?;
        while let Some(Token::Sign(sign)) = self.peek()
            && signs.contains(sign)
        {
            let sign = *sign;
            self.at += 1;
            let right = self.binary(level + 1)?;
            value = self.apply(sign, value, right)?;
        }
        Ok(value)
    }

    fn unary(&mut self) -> Result<Value, Fault> {
        let mut signs = Vec::new();
        while let Some(Token::Sign(sign @ ("-" | "+" | "~"))) = self.peek() {
            signs.push(*sign);
            self.at += 1;
        }
        let mut value = self.postfix()?;
        if self.take("**") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return self.error("nested too deeply");
            }
            let power = self.unary()?;
            self.depth -= 1;
            value = self.apply("**", value, power)?;
        }
        while let Some(sign) = signs.pop() {
            if self.skipping > 0 {
                continue;
            }
            value = match (sign, &value) {
                ("-", Value::Float(x)) => Value::Float(-x),
                ("+", Value::Float(x)) => Value::Float(*x),
                _ => match (sign, value.integer()) {
                    ("-", Some(n)) => Value::Integer(n.saturating_neg()),
                    ("~", Some(n)) => Value::Integer(!n),
                    ("+", Some(n)) => Value::Integer(n),
                    _ => return self.error(format!("{sign}{} has no meaning", value.show())),
                },
            };
        }
        Ok(value)
    }

    /// Evaluates `left sign right`.
    pub(super) fn apply(&self, sign: &str, left: Value, right: Value) -> Result<Value, Fault> {
        if self.skipping > 0 {
            return Ok(Value::None);
        }
        if let (Value::Text(format), "%") = (&left, sign) {
            return Ok(Value::Text(formatted(format, right)));
        }
        if let (Value::Text(a), "+", Value::Text(b)) = (&left, sign, &right) {
            if a.len() + b.len() > 1 << 20 {
                return self.error("a string that is too long");
            }
            return Ok(Value::Text(format!("{a}{b}")));
        }
        let result = match (left.integer(), right.integer()) {
            (Some(a), Some(b)) => integers(sign, a, b),
            _ => match (left.float(), right.float()) {
                (Some(a), Some(b)) => floats(sign, a, b),
                _ => None,
            },
        };
        let Some(result) = result else {
            let (a, b) = (left.show(), right.show());
            return self.error(format!("{a} {sign} {b} has no value"));
        };
        Ok(result)
    }

    fn postfix(&mut self) -> Result<Value, Fault> {
        let Some(token) = self.peek().cloned() else {
            return self.error("expected a value");
        };
        match token {
            Token::Integer(n) => {
                self.at += 1;
                Ok(Value::Integer(n))
            }
            Token::Float(x) => {
                self.at += 1;
                Ok(Value::Float(x))
            }
            Token::Text(mut text) => {
                self.at += 1;
                while let Some(Token::Text(more)) = self.peek() {
                    text.push_str(more);
                    self.at += 1;
                }
                Ok(Value::Text(text))
            }
            Token::Sign("(") => {
                self.at += 1;
                if self.take(")") {
                    return Ok(Value::Tuple(Vec::new()));
                }
                let value = self.tuple()?;
                self.expect(")")?;
                Ok(value)
            }
            Token::Name(name) => {
                self.at += 1;
                if self.take("(") {
                    let arguments = self.arguments()?;
                    return self.builtin(&name, &arguments);
                }
                self.name(&name)
            }
            _ => self.error("expected a value"),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Value>, Fault> {
        let mut arguments = Vec::new();
        if self.take(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if self.take(")") {
                return Ok(arguments);
            }
            self.expect(",")?;
        }
    }

    fn name(&mut self, name: &str) -> Result<Value, Fault> {
        match name {
            "True" => return Ok(Value::Bool(true)),
            "False" => return Ok(Value::Bool(false)),
            "None" => return Ok(Value::None),
            _ => {}
        }
        let value = self.assigned.get(name).or_else(|| self.known.get(name));
        let Some(value) = value.cloned() else {
            return Err(Fault::Unsupported {
                line: self.line(),
                message: format!("the name {name} in an assertion"),
            });
        };
        // Constants are upper case.
        if self.skipping == 0 && name.starts_with(|c: char| c.is_lowercase()) {
            self.mentioned.push((name.to_owned(), value.clone()));
        }
        Ok(value)
    }

    fn builtin(&self, name: &str, arguments: &[Value]) -> Result<Value, Fault> {
        if self.skipping > 0 || name == "print" {
            return Ok(Value::None);
        }
        let value = match (name, arguments) {
            ("abs", [value]) => match value.integer() {
                Some(n) => n.checked_abs().map(Value::Integer),
                None => value.float().map(|x| Value::Float(x.abs())),
            },
            ("int", [value]) => match value.integer() {
                Some(n) => Some(Value::Integer(n)),
                None => value.float().map(|x| Value::Integer(x as i128)),
            },
            ("float", [value]) => value.float().map(Value::Float),
            ("str", [value]) => Some(Value::Text(value.text())),
            ("min" | "max", [first, rest @ ..]) => {
                let sign = if name == "min" { "<" } else { ">" };
                let mut best = first;
                for value in rest {
                    if self.compare(sign, value, best)? {
                        best = value;
                    }
                }
                Some(best.clone())
            }
            _ => {
                return Err(Fault::Unsupported {
                    line: self.line(),
                    message: format!("{name}() of {} in Python", arguments.len()),
                });
            }
        };
        match value {
            Some(value) => Ok(value),
            None => self.error(format!("{name}() of what is no number")),
        }
    }
}

fn integers(sign: &str, a: i128, b: i128) -> Option<Value> {
    let shift = || u32::try_from(b).ok().filter(|&s| s < 96);
    Some(Value::Integer(match sign {
        "+" => a.checked_add(b)?,
        "-" => a.checked_sub(b)?,
        "*" => a.checked_mul(b)?,
        // Python rounds towards negative infinity.
        "//" | "%" if b == 0 => return None,
        "//" => {
            let quotient = a.checked_div(b)?;
            quotient - i128::from(a % b != 0 && (a < 0) != (b < 0))
        }
        "%" => {
            let rest = a.checked_rem(b)?;
            if rest != 0 && (rest < 0) != (b < 0) {
                rest + b
            } else {
                rest
            }
        }
        "/" if b == 0 => return None,
        "/" => return Some(Value::Float(a as f64 / b as f64)),
        "&" => a & b,
        "|" => a | b,
        "^" => a ^ b,
        "<<" => a.checked_mul(1_i128.checked_shl(shift()?)?)?,
        ">>" => a >> shift()?,
        "**" => a.checked_pow(u32::try_from(b).ok()?)?,
        _ => return None,
    }))
}

fn floats(sign: &str, a: f64, b: f64) -> Option<Value> {
    Some(Value::Float(match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" if b != 0.0 => a / b,
        "//" if b != 0.0 => (a / b).floor(),
        "%" if b != 0.0 => a - b * (a / b).floor(),
        _ => return None,
    }))
}

/// Evaluates `format % values`. Widths and precisions are ignored.
fn formatted(format: &str, values: Value) -> String {
    let mut values = match values {
        Value::Tuple(all) => all.into_iter(),
        one => vec![one].into_iter(),
    };
    let mut text = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let conversion = rest.by_ref().find(|c| c.is_alphabetic() || *c == '%');
        match conversion {
            Some('%') | None => text.push('%'),
            Some(_) => text.push_str(&values.next().map_or_else(String::new, |v| v.text())),
        }
    }
    text
}
