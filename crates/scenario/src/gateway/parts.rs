//! Settings that all kinds of gateway share.

use bentpipe_types::{Bytes, Span};

use crate::custom::CustomControls;
use crate::directory::Directory;
use crate::error::quoted;
use crate::fault::{Fault, Segment, fault, path};
use crate::gateway::schema::GatewayFile;
use crate::ip::IpName;
use crate::link::settings::Link;
use crate::quantity::time::Length;
use crate::traces::files::Files;

/// Default idle timeout (RFC 5382, requirement 5).
pub(crate) const IDLE_TIMEOUT: Span = Span::from_secs(124 * 60);

pub(crate) const SHORTEST_IDLE_TIMEOUT: Span = Span::from_secs(1);

pub(crate) const MEMORY: Bytes = Bytes::new(256 << 20);

/// Minimum memory: a connection's state and its two initial windows.
pub(crate) const LEAST_MEMORY: u64 = 256 << 10;

pub(crate) const MOST_MEMORY: u64 = 1 << 40;

const LEAST_BUFFER: u64 = 128 << 10;

const MOST_BUFFER: u64 = 1 << 29;

/// A crash of a gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// Time since the start of the run.
    pub at: Span,
    /// Time until the restart.
    pub lasts: Span,
}

/// Context for the settings of a gateway.
pub(crate) struct GatewayContext<'a> {
    pub(crate) nodes: &'a Directory<'a>,
    pub(crate) link_names: &'a Directory<'a>,
    pub(crate) links: &'a [Link],
    pub(crate) custom: &'a CustomControls,
    pub(crate) ip: IpName,
    pub(crate) files: &'a Files<'a>,
}

/// Returns the index of the link that the gateway serves.
pub(crate) fn facing(
    name: &str,
    file: &GatewayFile,
    node: usize,
    around: &GatewayContext<'_>,
) -> Result<usize, Fault> {
    let refuse = |message: String| Err(fault(&["gateways", name, "facing"], message));
    let Some(link) = &file.facing else {
        return refuse(r#"missing; expected the name of a link such as "satellite""#.to_owned());
    };
    let Some(members) = around.link_names.find(link) else {
        return refuse(around.link_names.missing(link));
    };
    // If there are several gateways and as many links, each gateway faces its own link.
    let own = around.nodes.find(name).filter(|own| own.count.is_some());
    let faced = match (own, members.count) {
        (Some(own), Some(count)) if node - own.first < count => members.first + node - own.first,
        (None, Some(count)) => {
            let message = format!("expected one link: {link} is {link}-1 to {link}-{count}");
            return refuse(message);
        }
        _ => members.first,
    };
    if !around.links[faced].between.contains(&node) {
        let message = format!(
            "expected a link that ends at {}, got {}",
            quoted(name),
            quoted(link)
        );
        return refuse(message);
    }
    let link_faced = &around.links[faced];
    if link_faced.backward.is_none() && link_faced.between[1] == node {
        let message = format!(
            "expected a link that {} sends on: {} is one_way, and leads to it",
            quoted(name),
            quoted(link)
        );
        return refuse(message);
    }
    Ok(faced)
}

/// Returns twice the bandwidth-delay product of the link: one for data in flight, and one for data
/// that are not acknowledged yet.
pub(crate) fn buffer(link: &Link) -> Bytes {
    let rates = link.directions().map(|(_, direction)| direction.rate);
    let rate = rates.max().unwrap_or(link.forward.rate);
    let product = rate.bytes_in(link.round_trip());
    let twice = product.get().saturating_mul(2);
    Bytes::new(twice.clamp(LEAST_BUFFER, MOST_BUFFER))
}

/// Returns the crashes of the gateway.
pub(crate) fn crashes(name: &str, file: &GatewayFile) -> Result<Vec<Crash>, Fault> {
    let files = file.crashes.as_deref().unwrap_or_default();
    let mut crashes: Vec<Crash> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let crash = Crash {
            at: file.at.0,
            lasts: file.lasts.map_or(Span::ZERO, |lasts| lasts.0),
        };
        if let Some(last) = crashes.last()
            && crash.at <= last.at + last.lasts
        {
            let back = Length(last.at + last.lasts);
            let message = format!(
                r#"expected a time after "{back}", after its restart, got "{}""#,
                file.at
            );
            let mut keys = path(&["gateways", name, "crashes"]);
            keys.extend([Segment::Index(index), Segment::Key("at".to_owned())]);
            return Err(Fault::new(keys, message));
        }
        crashes.push(crash);
    }
    Ok(crashes)
}
