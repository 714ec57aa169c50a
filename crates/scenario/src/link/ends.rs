//! The ends of links.

use crate::directory::{Directory, Members, pairs};
use crate::error::quoted;
use crate::fault::{Fault, Segment, fault, path};
use crate::link::schema::LinkFile;
use crate::named::Named;

/// Returns the number of links of each table.
pub(crate) fn link_counts<'a>(
    links: &'a Named<LinkFile>,
    nodes: &Directory<'_>,
) -> Result<Vec<(&'a str, Option<usize>)>, Fault> {
    if links.0.is_empty() {
        return Err(fault(&["links"], "expected at least one link"));
    }
    links
        .iter()
        .map(|(name, link)| Ok((name, link_ends(name, link, nodes)?.count)))
        .collect()
}

/// The ends of a table's links, and the number of links.
pub(crate) struct LinkEnds {
    pub(crate) first: Members,
    pub(crate) second: Members,
    pub(crate) count: Option<usize>,
    /// Receivers of a broadcast channel other than the first of `second`.
    pub(crate) others: Vec<usize>,
}

pub(crate) fn link_ends(
    name: &str,
    link: &LinkFile,
    nodes: &Directory<'_>,
) -> Result<LinkEnds, Fault> {
    let between = ["links", name, "between"];
    let names = &link.between.0;
    let (first, second) = match names.as_slice() {
        [first, second, rest @ ..] if rest.is_empty() || link.broadcast => (first, second),
        _ => {
            let message = format!(
                r#"expected two nodes such as ["server", "client"], got {} (one that several hear has broadcast = true)"#,
                names.len()
            );
            return Err(fault(&between, message));
        }
    };
    let find = |index: usize, end: &str| {
        let mut keys = path(&["links", name, "between"]);
        keys.push(Segment::Index(index));
        nodes
            .find(end)
            .ok_or_else(|| Fault::new(keys, nodes.missing(end)))
    };
    let (a, b) = (find(0, first)?, find(1, second)?);
    if link.broadcast {
        if a.count.is_some() {
            let message = format!(
                "expected one node as the first, which sends: there are {} {first}",
                a.len()
            );
            return Err(fault(&between, message));
        }
        let mut hearers = Vec::new();
        for (index, end) in names.iter().enumerate().skip(1) {
            let members = find(index, end)?;
            let all = members.first..members.first + members.len();
            if let Some(twice) = all
                .clone()
                .find(|one| *one == a.first || hearers.contains(one))
            {
                let what = if twice == a.first {
                    "it sends"
                } else {
                    "it is there already"
                };
                let mut keys = path(&between);
                keys.push(Segment::Index(index));
                let message = format!("expected another node than {}: {what}", quoted(end));
                return Err(Fault::new(keys, message));
            }
            hearers.extend(all);
        }
        return Ok(LinkEnds {
            first: a,
            second: Members {
                first: b.first,
                count: None,
            },
            count: None,
            others: hearers.split_off(1),
        });
    }
    let Some(count) = pairs(a, b) else {
        let message = format!(
            "expected the same count at both ends, got {} {first} and {} {second}",
            a.len(),
            b.len()
        );
        return Err(fault(&between, message));
    };
    if (0..count.unwrap_or(1)).any(|n| a.nth(n) == b.nth(n)) {
        let message = format!("expected two different nodes, got {} twice", quoted(first));
        return Err(fault(&between, message));
    }
    Ok(LinkEnds {
        first: a,
        second: b,
        count,
        others: Vec::new(),
    })
}
