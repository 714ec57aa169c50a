//! An application of a host that runs another application over QUIC.

use bentpipe_host::{
    Application, ApplicationProgress, Arrival, ConnectionKeys, Report, SocketContext, SocketId,
    TransportState,
};
use bentpipe_tcp::Events;
use bentpipe_types::Time;

use crate::context::{Quic, QuicContext};
use crate::engine::Engine;

/// Limit of the rounds in which the inner application and its connections react to each other after
/// one event.
const ROUNDS: u32 = 64;

/// An application over QUIC, as an application of a host: to the host, it sends and receives
/// datagrams.
#[derive(Debug)]
pub struct QuicApplication {
    engine: Engine,
    inner: Box<dyn Application<Quic>>,
    opened: u16,
    progress: ApplicationProgress,
    /// The inner application has completed its task, and its connections were closed.
    closed: bool,
}

impl QuicApplication {
    /// Creates an application over an endpoint.
    #[must_use]
    pub fn new(engine: Engine, inner: Box<dyn Application<Quic>>) -> Self {
        let progress = inner.progress();
        Self {
            engine,
            inner,
            opened: 0,
            progress,
            closed: false,
        }
    }

    /// Lets the inner application act, then connections and application react to each other, and
    /// sends what they have to send.
    fn run<P: ConnectionKeys>(
        &mut self,
        api: &mut SocketContext<'_, '_, P>,
        act: impl FnOnce(&mut dyn Application<Quic>, &mut QuicContext<'_>),
    ) {
        let now = api.now();
        let (ports, address) = (api.ports(), api.address());
        let mut context = QuicContext {
            engine: &mut self.engine,
            now,
            random: api.random(),
            ports,
            address,
            opened: &mut self.opened,
        };
        act(self.inner.as_mut(), &mut context);
        for _ in 0..ROUNDS {
            if !context.engine.process(now) {
                break;
            }
            while let Some((socket, events, is_new)) = context.engine.next_event() {
                if is_new {
                    self.inner.on_accept(socket, &mut context);
                }
                self.inner.on_events(socket, events, &mut context);
                if events.has(Events::CLOSED) {
                    context.engine.remove(socket);
                }
            }
        }
        let inner = self.inner.progress();
        if inner.finished.is_some() && !self.closed && self.engine.sockets().next().is_none() {
            self.closed = true;
            self.engine.close(now);
            self.engine.process(now);
        }
        self.engine.transmit(now, |datagram| {
            api.send_payload(
                datagram.local_port,
                datagram.remote,
                datagram.ecn,
                datagram.payload,
            );
        });
        let next = if self.engine.has_news() {
            Some(now)
        } else {
            self.engine.next_deadline()
        };
        self.progress = inner;
        self.progress.next = match (inner.next, next) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

impl<P: ConnectionKeys> Application<P> for QuicApplication {
    fn start(&mut self, api: &mut SocketContext<'_, '_, P>) {
        self.run(api, |inner, context| inner.start(context));
    }

    fn on_events(&mut self, _: SocketId, _: Events, _: &mut SocketContext<'_, '_, P>) {}

    fn on_datagram(&mut self, arrival: Arrival, api: &mut SocketContext<'_, '_, P>) {
        let now = api.now();
        if let Some(packet) = arrival.packet
            && let Some(payload) = api.payload(packet)
        {
            let ecn = api.ecn(packet);
            // A connection may have been idle for too long before.
            self.engine.expire(now);
            self.engine
                .receive(arrival.from, arrival.to, ecn, payload, now);
        }
        self.run(api, |_, _| ());
    }

    fn on_deadline(&mut self, api: &mut SocketContext<'_, '_, P>) {
        let now = api.now();
        self.engine.expire(now);
        self.run(api, |inner, context| {
            if inner.progress().next.is_some_and(|at| at <= now) {
                inner.on_deadline(context);
            }
        });
    }

    fn progress(&self) -> ApplicationProgress {
        self.progress
    }

    fn datagram_bytes(&self) -> u64 {
        self.engine.bytes_delivered()
    }

    fn transport(&self) -> Option<TransportState> {
        self.engine.state()
    }

    fn keeps_to_packets(&self) -> bool {
        self.inner.keeps_to_packets()
    }

    fn report(&self, now: Time, report: &mut Report) {
        self.inner.report(now, report);
        report.quic = Some(Box::new(self.engine.report(now)));
    }
}
