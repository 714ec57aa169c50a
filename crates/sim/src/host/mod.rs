//! A host: connections, the applications on top of them, and their deadlines.

mod deadlines;

use bentpipe_tcp::{Config, Connection, State};
use bentpipe_types::{Agent, Ctx, DropReason, Endpoint, Flags, PacketRef, Port, Routes, Seq, Time};
use rustc_hash::FxHashMap;

use crate::Application;
use deadlines::Deadlines;

/// One end of a flow: what it will be, and once it has begun, its connection.
#[derive(Debug)]
struct FlowEnd {
    local: Endpoint,
    remote: Endpoint,
    egress: Port,
    initial_sequence: Seq,
    config: Config,
    application: Application,
    /// When the opening side opens; `None` on the side that waits for the SYN.
    opens: Option<Time>,
    connection: Option<Box<Connection>>,
}

/// Which of a host's flow ends, in the order they were added.
pub(crate) type FlowEndIndex = u32;

/// A host with any number of flows.
#[derive(Debug, Default)]
pub struct Host {
    routes: Routes,
    ends: Vec<FlowEnd>,
    /// (local port, remote endpoint) -> flow end.
    by_tuple: FxHashMap<u64, FlowEndIndex>,
    /// The tuple of the last packet and its flow end: with one flow, or in a burst, the next
    /// packet's too.
    last: Option<(u64, FlowEndIndex)>,
    deadlines: Deadlines,
}

impl Host {
    /// Adds one end of a flow. `opens` is when it opens the connection; `None` waits for a SYN.
    /// `None` where no link leads towards the other end.
    pub(crate) fn add_flow_end(
        &mut self,
        local: Endpoint,
        remote: Endpoint,
        initial_sequence: Seq,
        config: Config,
        application: Application,
        opens: Option<Time>,
    ) -> Option<FlowEndIndex> {
        let egress = self.routes.port_towards(remote.address)?;
        let index = self.ends.len() as FlowEndIndex;
        self.ends.push(FlowEnd {
            local,
            remote,
            egress,
            initial_sequence,
            config,
            application,
            opens,
            connection: None,
        });
        let previous = self.by_tuple.insert(tuple(local.port, remote), index);
        debug_assert!(previous.is_none(), "two flows with the same ends");
        self.deadlines.add();
        if let Some(at) = opens {
            self.deadlines.arm(index, at);
        }
        Some(index)
    }

    /// The connection of a flow end, once there is one.
    pub(crate) fn connection(&self, index: FlowEndIndex) -> Option<&Connection> {
        self.ends.get(index as usize)?.connection.as_deref()
    }

    /// The two endpoints of a flow end: its own, and the other's.
    pub(crate) fn endpoints(&self, index: FlowEndIndex) -> Option<(Endpoint, Endpoint)> {
        let end = self.ends.get(index as usize)?;
        Some((end.local, end.remote))
    }

    fn flow_end_of(&mut self, key: u64) -> Option<FlowEndIndex> {
        if let Some((last, index)) = self.last
            && last == key
        {
            return Some(index);
        }
        let index = *self.by_tuple.get(&key)?;
        self.last = Some((key, index));
        Some(index)
    }

    /// Lets the application see what is new, and notes when the connection next wants to run.
    #[inline(always)]
    fn settle(&mut self, index: FlowEndIndex, cx: &mut Ctx<'_>) {
        let end = &mut self.ends[index as usize];
        let Some(connection) = end.connection.as_deref_mut() else {
            return;
        };
        // An application that writes or closes may cause news; but only so often.
        for _ in 0..4 {
            let events = connection.take_events();
            if events.is_empty() {
                break;
            }
            end.application.on_events(events, connection, cx);
        }
        if let Some(deadline) = connection.next_deadline() {
            self.deadlines.arm(index, deadline);
        }
    }

    fn open(&mut self, index: FlowEndIndex, cx: &mut Ctx<'_>) {
        let end = &mut self.ends[index as usize];
        let mut connection = Connection::connect(
            &end.config,
            end.local,
            end.remote,
            end.egress,
            end.initial_sequence,
            cx,
        );
        end.application.on_open(&mut connection);
        end.connection = Some(Box::new(connection));
    }

    fn accept(&mut self, index: FlowEndIndex, syn: PacketRef, cx: &mut Ctx<'_>) {
        let end = &mut self.ends[index as usize];
        let mut connection = Connection::accept(
            &end.config,
            end.local,
            end.remote,
            end.egress,
            end.initial_sequence,
            syn,
            cx,
        );
        end.application.on_open(&mut connection);
        end.connection = Some(Box::new(connection));
    }

    /// A packet that no open connection takes: RFC 9293 section 3.10.7.1.
    fn refuse(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        cx.discards.count(DropReason::NoConnection);
        bentpipe_tcp::reset_reply(packet, from, cx);
    }
}

fn tuple(local_port: u16, remote: Endpoint) -> u64 {
    u64::from(local_port) << 32 | u64::from(remote.address.0) << 16 | u64::from(remote.port)
}

impl Agent for Host {
    fn routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        let record = cx.packets.get(packet);
        let key = tuple(record.destination.port, record.source);
        let flags = record.flags;
        let Some(index) = self.flow_end_of(key) else {
            self.refuse(from, packet, cx);
            return;
        };
        let end = &mut self.ends[index as usize];
        match end.connection.as_deref_mut() {
            Some(connection) if connection.state() != State::Closed => {
                connection.on_packet(packet, cx);
            }
            None if end.opens.is_none()
                && flags.has(Flags::SYN)
                && !flags.has(Flags::ACK.with(Flags::RST)) =>
            {
                self.accept(index, packet, cx);
            }
            _ => {
                self.refuse(from, packet, cx);
                return;
            }
        }
        self.settle(index, cx);
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        while let Some(index) = self.deadlines.due(cx.now) {
            match self.ends[index as usize].connection.as_deref_mut() {
                None => self.open(index, cx),
                Some(connection) => {
                    if connection
                        .next_deadline()
                        .is_some_and(|deadline| deadline <= cx.now)
                    {
                        connection.on_deadline(cx);
                    }
                }
            }
            self.settle(index, cx);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.deadlines.next()
    }
}
