//! The gateway of a machine's part, between two real links.

use std::net::IpAddr;
use std::sync::Arc;

use crate::gateway::settings::{Addresses, Gateway, Multiplex, RealEnds, TrafficClass};
use crate::scenario::settings::Scenario;
use crate::station::error::StationError;

/// Converts the gateway to its links here; `own` has their indices in the file.
pub(crate) fn gateway_between_links(
    gateway: &Gateway,
    name: &str,
    (own, addresses): (&[usize], Option<Addresses>),
    scenario: &Scenario,
    notes: &mut Vec<String>,
) -> Result<Gateway, StationError> {
    let facing = |of: usize| {
        own.iter().position(|link| *link == of).ok_or_else(|| {
            let link = &scenario.links[of].name;
            let message = format!("the gateway is there for the link \"{link}\", and that is none of the two; expected an interface for it");
            StationError::new(format!("gateways.{name}.facing"), message)
        })
    };
    let mut note_processing = || {
        notes.push(format!(
            "gateways.{name}.processing: no effect, a real processor takes its own time"
        ));
    };
    let multiplexes = matches!(gateway, Gateway::Split(split) if split.multiplex.is_some());
    if addresses.is_some() && !multiplexes {
        let key = format!("gateways.{name}");
        return Err(StationError::new(
            key,
            "addresses are for persistent connections between gateways, and this one has no \"multiplex\"",
        ));
    }
    Ok(match gateway {
        Gateway::Router { processing, .. } => {
            if processing.is_some() {
                note_processing();
            }
            Gateway::Router {
                icmp: true,
                processing: None,
            }
        }
        Gateway::Split(split) => {
            let mut split = split.as_ref().clone();
            split.facing = facing(split.facing)?;
            if let Some(with) = &mut split.multiplex {
                *with = multiplexing(*with, name, split.facing, addresses)?;
            }
            has_no_hosts(split.only.as_ref(), name, "only")?;
            has_no_hosts(split.except.as_ref(), name, "except")?;
            if split.processing.take().is_some() {
                note_processing();
            }
            Gateway::Split(Arc::new(split))
        }
        Gateway::Hybrid(hybrid) => {
            let mut hybrid = hybrid.as_ref().clone();
            hybrid.facing = facing(hybrid.facing)?;
            if hybrid.processing.take().is_some() {
                note_processing();
            }
            Gateway::Hybrid(Arc::new(hybrid))
        }
    })
}

/// Returns the settings of persistent connections to the gateway at the other end of the facing
/// link.
fn multiplexing(
    with: Multiplex,
    name: &str,
    facing: usize,
    addresses: Option<Addresses>,
) -> Result<Multiplex, StationError> {
    let refuse = |message: String| {
        let key = format!("gateways.{name}.multiplex");
        Err(StationError::new(key, message))
    };
    let Some(addresses) = addresses else {
        return refuse("persistent connections between gateways need an unused address at each: give this one's and the other's (--address 192.0.2.250 --peer 198.51.100.250), of the networks that are behind them".to_owned());
    };
    let Addresses { own, peer } = addresses;
    if own.is_ipv4() != peer.is_ipv4() {
        return refuse(format!("{own} and {peer} are of two versions of IP"));
    }
    let usable = |ip: &IpAddr| !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback();
    if own == peer || !usable(&own) || !usable(&peer) {
        return refuse(format!("{own} and {peer} are no addresses of two gateways"));
    }
    Ok(Multiplex {
        // The nodes that stand for the networks behind the two links have the indices of the links.
        peer: facing,
        real: Some(RealEnds {
            hosts: 1 - facing,
            addresses,
        }),
        ..with
    })
}

/// Refuses a class of connections that names hosts of the file: their real addresses are unknown.
fn has_no_hosts(class: Option<&TrafficClass>, name: &str, key: &str) -> Result<(), StationError> {
    if class.is_some_and(|class| class.hosts.is_some()) {
        let key = format!("gateways.{name}.{key}.hosts");
        return Err(StationError::new(
            key,
            "which addresses the file's hosts have is not known here; expected \"ports\"",
        ));
    }
    Ok(())
}
