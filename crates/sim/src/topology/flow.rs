//! A flow's two ends, as whichever hosts they are at have to set them up.

use std::sync::Arc;

use bentpipe_host::applications::Ends;
use bentpipe_host::{Application, ApplicationId, Host, Member, Ports, Realm, World};
use bentpipe_tcp::Config;
use bentpipe_types::{Address, Endpoint, RandomStream, Time};

use crate::Traffic;

/// A flow's two ends: who they are, from which ports the one opens connections and on which the other is
/// spoken to, and their luck. Simulated, in a host of ours among real ones, or by the kernel's sockets, it is
/// the same.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// The flow's name.
    pub name: String,
    /// The node that opens.
    pub from: Address,
    /// The node that is spoken to.
    pub to: Address,
    /// The channel that the opener sends to: that node is one of its members. `None`: to the node itself.
    pub channel: Option<Address>,
    /// When it begins.
    pub opens: Time,
    /// What it does.
    pub traffic: Traffic,
    /// Local ports of the opener's: nobody else's there.
    pub ports: Ports,
    /// The network's seed.
    pub seed: u64,
}

impl FlowPlan {
    /// Where the server is spoken to first.
    #[must_use]
    pub fn server(&self) -> Endpoint {
        Endpoint {
            address: self.channel.unwrap_or(self.to),
            port: self.traffic.port(),
        }
    }

    /// The applications at both ends.
    #[must_use]
    pub fn ends<P: World, Q: World>(&self) -> Ends<P, Q> {
        self.traffic.ends(self.server())
    }

    /// How the opener becomes a member of its host, with this TCP.
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

    /// How the server becomes a member of its host, with this TCP.
    #[must_use]
    pub fn listener(&self, config: impl Into<Arc<Config>>) -> Member {
        let mut sequences = self.sequences();
        // The opener has the first.
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

    /// Puts the opener into its host.
    pub fn add_opener<P: Realm>(
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

    /// Puts the server into its host.
    pub fn add_server<P: Realm>(
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
