//! Names and their indices.

use std::collections::BTreeMap;
use std::iter;

use crate::error::quoted;
use crate::fault::{Fault, fault};
use crate::suggest::suggest;

/// The entries of one name: one, or as many as `count` gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Members {
    pub(crate) first: usize,
    /// Number of entries, or `None` for a single one with the name itself.
    pub(crate) count: Option<usize>,
}

impl Members {
    pub(crate) fn len(self) -> usize {
        self.count.unwrap_or(1)
    }

    /// Returns the index of this end in the n-th pair. A single entry is in every pair.
    pub(crate) fn nth(self, n: usize) -> usize {
        self.first + if self.count.is_some() { n } else { 0 }
    }
}

/// Returns how many pairs two ends make, with each entry of a counted end in one pair. The error is
/// that the counts differ.
pub(crate) fn pairs(a: Members, b: Members) -> Option<Option<usize>> {
    match (a.count, b.count) {
        (Some(a), Some(b)) if a != b => None,
        (a, b) => Some(a.or(b)),
    }
}

/// Returns the name of the n-th of `count` entries, counted from 0.
pub(crate) fn member_name(name: &str, count: Option<usize>, n: usize) -> String {
    match count {
        Some(_) => format!("{name}-{}", n + 1),
        None => name.to_owned(),
    }
}

/// All names of one kind, with indices in the order of the file.
pub(crate) struct Directory<'a> {
    what: &'static str,
    names: BTreeMap<&'a str, Members>,
    in_order: Vec<&'a str>,
    len: usize,
}

impl<'a> Directory<'a> {
    /// Numbers the entries of one section. All resulting names must differ.
    pub(crate) fn of(
        what: &'static str,
        section: &str,
        counts: &[(&'a str, Option<usize>)],
    ) -> Result<Self, Fault> {
        let mut directory = Self {
            what,
            names: BTreeMap::new(),
            in_order: Vec::new(),
            len: 0,
        };
        for (name, count) in counts {
            directory.add(name, *count);
        }
        for (name, _) in counts {
            directory.refuse_duplicate_name(section, name)?;
        }
        Ok(directory)
    }

    /// Adds entries under a new name. Returns false if the name exists.
    pub(crate) fn add(&mut self, name: &'a str, count: Option<usize>) -> bool {
        let first = self.len;
        let new = self.names.insert(name, Members { first, count }).is_none();
        self.in_order.push(name);
        self.len = first.saturating_add(count.unwrap_or(1));
        new
    }

    /// Refuses a name such as client-2 if the second of several clients has it.
    pub(crate) fn refuse_duplicate_name(&self, section: &str, name: &str) -> Result<(), Fault> {
        match self.numbered(name) {
            Some((base, n, count)) if n <= count => {
                let message = format!(
                    "expected another name: count = {count} makes {base}-1 to {base}-{count}"
                );
                Err(fault(&[section, name], message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the entries of a name.
    pub(crate) fn find(&self, name: &str) -> Option<Members> {
        if let Some(members) = self.names.get(name) {
            return Some(*members);
        }
        let (base, n, count) = self.numbered(name)?;
        let group = self.names.get(base)?;
        (n <= count).then_some(Members {
            first: group.first + n - 1,
            count: None,
        })
    }

    /// Splits `client-7` into ("client", 7, the number of clients), if there are several clients.
    fn numbered<'n>(&self, name: &'n str) -> Option<(&'n str, usize, usize)> {
        let (base, n) = name.rsplit_once('-')?;
        let count = self.names.get(base)?.count?;
        let canonical = n.bytes().all(|byte| byte.is_ascii_digit()) && !n.starts_with('0');
        let n = n.parse().ok().filter(|n| canonical && *n >= 1)?;
        Some((base, n, count))
    }

    /// Returns the message for a name that does not exist.
    pub(crate) fn missing(&self, name: &str) -> String {
        let what = self.what;
        let got = quoted(name);
        if let Some((base, _, count)) = self.numbered(name) {
            return format!("no {what} is named {got}: there are {base}-1 to {base}-{count}");
        }
        if let Some(near) = suggest(name, self.in_order.iter().copied()) {
            return format!("no {what} is named {got}; did you mean {}?", quoted(near));
        }
        if self.in_order.is_empty() {
            return format!("no {what} is named {got}: there is none");
        }
        let known: Vec<&str> = self.in_order.iter().copied().take(8).collect();
        let more = (self.in_order.len() > known.len()).then_some("...");
        let known: Vec<&str> = known
            .into_iter()
            .chain(iter::once(more).flatten())
            .collect();
        format!("no {what} is named {got}; known: {}", known.join(", "))
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}
