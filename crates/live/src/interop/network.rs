//! The network between the two ends: device, impaired path, and our host.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use bentpipe_host::{Limits, Listener, Member, Remote, Taker};
use bentpipe_link::{DropTail, Limit, Settings};
use bentpipe_sim::{LinkSettings, NetworkBuilder};
use bentpipe_types::{BitRate, Endpoint, Span, Time};

use super::cell::{Cell, Role};
use super::ours::{OurApplication, Reports};
use super::plans::{PORT, Plans};
use crate::engine::Prefix;
use crate::{Device, Engine, ImpairedPath, LiveHost};

/// Names of the nodes whose counters are read.
pub(super) const OURS: &str = "ours";
pub(super) const PATH: &str = "path";

/// Returns a link with negligible delay and no drops.
fn link(name: &str) -> LinkSettings {
    let way = || {
        Some(Settings::new(
            BitRate::new(1_000_000_000_000)?,
            Span::ZERO,
            DropTail {
                limit: Limit::Packets(1 << 20),
            },
        ))
    };
    LinkSettings {
        name: name.to_owned(),
        forward: way(),
        backward: way(),
    }
}

/// Creates the network with the kernel's device and a host that carries out the plan. `between`:
/// our address and the kernel's.
pub(super) fn engine(
    cell: &Cell,
    plans: &Plans,
    between: (IpAddr, IpAddr),
    port: u16,
    reports: &Reports,
    device: Box<dyn Device>,
) -> io::Result<Engine> {
    let mut builder = NetworkBuilder::new(1);
    let kernel = builder.attached("kernel");
    let path = ImpairedPath::new(cell.condition.impairment(), 1);
    let path = builder.custom(PATH, Box::new(path));
    let mut host = LiveHost::new(Limits::default())?;
    let (plan, config) = (plans.ours, cell.config());
    match cell.role {
        Role::Client => {
            let remote = Remote {
                endpoint: Endpoint {
                    address: kernel.address(),
                    port,
                },
                ip: Some(between),
            };
            let member = Member {
                starts: Some(Time::ZERO),
                ..Member::new(config)
            };
            let client =
                OurApplication::client(plan, remote, plans.connections, Arc::clone(reports));
            host.host_mut().add(member, Box::new(client));
        }
        Role::Server => {
            let reports = Arc::clone(reports);
            let make = move |_| Box::new(OurApplication::server(plan, Arc::clone(&reports))) as _;
            let taker = Taker::Each(config.into(), Box::new(make));
            host.host_mut().listen(PORT, Listener::new(taker));
        }
    }
    let ours = builder.custom(OURS, Box::new(host));
    builder.link(kernel, path, link("outside"));
    builder.link(path, ours, link("inside"));
    let network = builder.build().map_err(io::Error::other)?;
    let mut engine = Engine::new(network);
    let (our_ip, kernel_ip) = between;
    engine.attach(kernel, device, &[Prefix::of(kernel_ip)]);
    engine.add_prefix(ours, Prefix::of(our_ip));
    Ok(engine)
}
