//! Names, and the indices they stand for.

use std::collections::BTreeMap;
use std::iter;

use super::fault;
use crate::document::Fault;
use crate::error::quoted;
use crate::suggest::suggest;

/// What a name stands for: one thing, or as many as `count` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Members {
    pub(super) first: usize,
    /// None: one thing, of the name itself.
    pub(super) count: Option<usize>,
}

impl Members {
    pub(super) fn len(self) -> usize {
        self.count.unwrap_or(1)
    }

    /// Index of the n-th pair's member: the one thing stands in every pair.
    pub(super) fn nth(self, n: usize) -> usize {
        self.first + if self.count.is_some() { n } else { 0 }
    }
}

/// How many pairs two ends make, each member of a counted one once; none if the counts differ.
pub(super) fn pairs(a: Members, b: Members) -> Option<Option<usize>> {
    match (a.count, b.count) {
        (Some(a), Some(b)) if a != b => None,
        (a, b) => Some(a.or(b)),
    }
}

/// The n-th of `count` things called `name`, counted from 0.
pub(super) fn member_name(name: &str, count: Option<usize>, n: usize) -> String {
    match count {
        Some(_) => format!("{name}-{}", n + 1),
        None => name.to_owned(),
    }
}

/// Every name of one kind, with the indices in the order of the file.
pub(super) struct Directory<'a> {
    what: &'static str,
    names: BTreeMap<&'a str, Members>,
    in_order: Vec<&'a str>,
    len: usize,
}

impl<'a> Directory<'a> {
    /// Numbers the things of one section. No two may end up with the same name.
    pub(super) fn of(
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
            directory.refuse_twin(section, name)?;
        }
        Ok(directory)
    }

    /// Adds things under a name that is not there yet; false if it is.
    pub(super) fn add(&mut self, name: &'a str, count: Option<usize>) -> bool {
        let first = self.len;
        let new = self.names.insert(name, Members { first, count }).is_none();
        self.in_order.push(name);
        self.len = first.saturating_add(count.unwrap_or(1));
        new
    }

    /// A thing called client-2 beside the second of client's.
    pub(super) fn refuse_twin(&self, section: &str, name: &str) -> Result<(), Fault> {
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

    /// What the name stands for.
    pub(super) fn find(&self, name: &str) -> Option<Members> {
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

    /// `client-7` as ("client", 7, the number of clients), if there are several.
    fn numbered<'n>(&self, name: &'n str) -> Option<(&'n str, usize, usize)> {
        let (base, n) = name.rsplit_once('-')?;
        let count = self.names.get(base)?.count?;
        let canonical = n.bytes().all(|byte| byte.is_ascii_digit()) && !n.starts_with('0');
        let n = n.parse().ok().filter(|n| canonical && *n >= 1)?;
        Some((base, n, count))
    }

    /// Why `find` found nothing.
    pub(super) fn missing(&self, name: &str) -> String {
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

    /// How many things there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}
