//! A flow's two ends, independent of the hosts that run them.

use std::sync::Arc;

use bentpipe_host::applications::Ends;
use bentpipe_host::{
    Application, ApplicationId, ConnectionKeys, Host, Member, Ports, SocketBackend,
};
use bentpipe_tcp::{Config, Ranges};
use bentpipe_types::{Address, Endpoint, RandomStream, Time};

use crate::Traffic;

/// A flow's two ends: nodes, ports and random streams. The same for simulated hosts, our hosts
/// among real ones, and kernel sockets.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// The flow's name.
    pub name: String,
    /// The node that opens connections.
    pub from: Address,
    /// The node that accepts them.
    pub to: Address,
    /// The multicast channel that the opener sends to, if any: `to` is one of its members.
    pub channel: Option<Address>,
    /// Start time.
    pub opens: Time,
    /// Application.
    pub traffic: Traffic,
    /// Local ports of the opener, used by no other flow there.
    pub ports: Ports,
    /// Seed of the run.
    pub seed: u64,
}

/// Creates the ends of a flow over another transport than the hosts' TCP.
pub type MakeEnds = Box<dyn FnOnce(&FlowPlan) -> Ends<Ranges>>;

impl FlowPlan {
    /// Returns the server's first endpoint.
    #[must_use]
    pub fn server(&self) -> Endpoint {
        Endpoint {
            address: self.channel.unwrap_or(self.to),
            port: self.traffic.port(),
        }
    }

    /// Creates the applications of both ends.
    #[must_use]
    pub fn ends<P: SocketBackend, Q: SocketBackend>(&self) -> Ends<P, Q> {
        self.traffic.ends(self.server())
    }

    /// Returns the opener's registration at its host, with this TCP configuration.
    #[must_use]
    pub fn opener(&self, config: impl Into<Arc<Config>>) -> Member {
        Member {
            ports: self.ports,
            starts: Some(self.opens),
            sequences: self.sequences(),
            random: RandomStream::new(self.seed, &self.name, "opener"),
            ..Member::new(config)
        }
    }

    /// Returns the server's registration at its host, with this TCP configuration.
    #[must_use]
    pub fn listener(&self, config: impl Into<Arc<Config>>) -> Member {
        let mut sequences = self.sequences();
        // The opener uses the first number.
        sequences.bits();
        Member {
            datagram_port: Some(self.traffic.port()),
            sequences,
            random: RandomStream::new(self.seed, &self.name, "server"),
            ..Member::new(config)
        }
    }

    fn sequences(&self) -> RandomStream {
        RandomStream::new(self.seed, &self.name, "initial sequence numbers")
    }

    /// Adds the opener to its host.
    pub fn add_opener<P: ConnectionKeys>(
        &self,
        host: &mut Host<P>,
        config: impl Into<Arc<Config>>,
        application: Box<dyn Application<P>>,
    ) -> ApplicationId {
        let opener = host.add(self.opener(config), application);
        if let Some(port) = self.traffic.calls_back_from() {
            let (first, last) = self.ports.bounds();
            for own in first..=last {
                host.expect(own, self.to, Ports::range(port, port), opener);
            }
        }
        opener
    }

    /// Adds the server to its host.
    pub fn add_server<P: ConnectionKeys>(
        &self,
        host: &mut Host<P>,
        config: impl Into<Arc<Config>>,
        application: Box<dyn Application<P>>,
    ) -> ApplicationId {
        let server = host.add(self.listener(config), application);
        for port in self.traffic.ports() {
            host.expect(port, self.from, self.ports, server);
        }
        server
    }
}
