//! Fuzzes two QUIC endpoints with each other's datagrams, which may be lost, damaged, repeated,
//! late or from another port, and with any bytes.

use arbitrary::Arbitrary;
use bentpipe_quic::{Engine, MOST_CONNECTIONS, QuicSettings};
use bentpipe_tcp::Events;
use bentpipe_types::{Address, Ecn, Endpoint, RandomStream, Span, Time};

/// Steps.
#[derive(Arbitrary, Debug)]
pub struct Input {
    early_data: bool,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// Opens a stream and writes bytes.
    Write(u16),
    /// Delivers a waiting datagram, from a port that may be another one than the client's.
    Deliver { which: u8, port: u8, repeat: bool },
    /// Delivers a waiting datagram after changes of bytes and length.
    Damage {
        which: u8,
        changes: Vec<(u16, u8)>,
        cut: Option<u16>,
    },
    /// Loses a waiting datagram.
    Lose(u8),
    /// Delivers any bytes.
    Bytes { server: bool, bytes: Vec<u8> },
    /// Milliseconds to advance, with all timers.
    Wait(u16),
}

const CLIENT: Endpoint = Endpoint {
    address: Address(1),
    port: 40_000,
};
const SERVER: Endpoint = Endpoint {
    address: Address(2),
    port: 443,
};

/// Datagrams that wait at most; older ones are lost.
const WAITING: usize = 1_000;

struct Ends {
    client: Engine,
    server: Engine,
    now: Time,
    /// Datagrams, and whether they are for the server.
    wire: Vec<(bool, Vec<u8>)>,
}

impl Ends {
    /// Lets both ends process everything, and collects their datagrams.
    fn settle(&mut self) {
        for (is_client, end) in [(true, &mut self.client), (false, &mut self.server)] {
            for _ in 0..64 {
                if !end.process(self.now) {
                    break;
                }
                while let Some((socket, events, _)) = end.next_event() {
                    if events.has(Events::CLOSED) {
                        end.remove(socket);
                    } else {
                        end.sink(socket);
                        // The other direction ends, too.
                        end.feed(socket, 0, true);
                    }
                }
            }
            end.transmit(self.now, |datagram| {
                self.wire.push((is_client, datagram.payload.to_vec()));
            });
        }
        let excess = self.wire.len().saturating_sub(WAITING);
        self.wire.drain(..excess);
    }

    fn deliver(&mut self, to_server: bool, port: u16, bytes: &[u8]) {
        let (end, from, local) = if to_server {
            (&mut self.server, Endpoint { port, ..CLIENT }, SERVER.port)
        } else {
            (&mut self.client, SERVER, CLIENT.port)
        };
        end.expire(self.now);
        end.receive(from, local, Ecn::NotCapable, bytes, self.now);
        self.settle();
    }
}

/// Runs the steps.
///
/// # Panics
///
/// A stream has wrong bytes although nothing was damaged, timers do not come to rest, or there are
/// too many connections.
pub fn run(input: &Input) {
    let settings = QuicSettings {
        early_data: input.early_data,
        ..QuicSettings::default()
    };
    let random = |name| RandomStream::new(1, name, "fuzz");
    let mut ends = Ends {
        client: Engine::new(settings.clone(), random("client"), false),
        server: Engine::new(settings, random("server"), true),
        now: Time::ZERO,
        wire: Vec::new(),
    };
    let mut is_damaged = false;
    for step in input.steps.iter().take(200) {
        match step {
            Step::Write(bytes) => {
                if let Ok(socket) = ends.client.open(CLIENT, SERVER, ends.now) {
                    ends.client.feed(socket, (*bytes).into(), true);
                }
                ends.settle();
            }
            Step::Deliver {
                which,
                port,
                repeat,
            } => {
                let count = ends.wire.len().max(1);
                let Some((to_server, bytes)) = ends.wire.get(usize::from(*which) % count).cloned()
                else {
                    continue;
                };
                if !repeat {
                    ends.wire.remove(usize::from(*which) % count);
                }
                ends.deliver(to_server, CLIENT.port + u16::from(*port), &bytes);
            }
            Step::Damage {
                which,
                changes,
                cut,
            } => {
                let count = ends.wire.len().max(1);
                let Some((to_server, mut bytes)) =
                    ends.wire.get(usize::from(*which) % count).cloned()
                else {
                    continue;
                };
                is_damaged = true;
                let length = bytes.len();
                for &(at, change) in changes {
                    bytes[usize::from(at) % length] ^= change;
                }
                bytes.truncate(cut.map_or(length, |cut| usize::from(cut).max(1)));
                ends.deliver(to_server, CLIENT.port, &bytes);
            }
            Step::Lose(which) => {
                if !ends.wire.is_empty() {
                    let which = usize::from(*which) % ends.wire.len();
                    ends.wire.remove(which);
                }
            }
            Step::Bytes { server, bytes } => {
                is_damaged = true;
                ends.deliver(*server, CLIENT.port, bytes);
            }
            Step::Wait(milliseconds) => {
                let end = ends.now + Span::from_millis((*milliseconds).into());
                let mut turns = 0;
                loop {
                    let next = [&ends.client, &ends.server].map(Engine::next_deadline);
                    let next = next.into_iter().flatten().min();
                    let Some(at) = next.filter(|at| *at <= end) else {
                        break;
                    };
                    ends.now = ends.now.max(at);
                    ends.client.expire(ends.now);
                    ends.server.expire(ends.now);
                    ends.settle();
                    turns += 1;
                    assert!(turns < 100_000, "it never comes to rest");
                }
                ends.now = end;
            }
        }
        for end in [&ends.client, &ends.server] {
            assert!(end.connections() <= MOST_CONNECTIONS);
            let streams = QuicSettings::default().streams as usize;
            let open = end.sockets().count();
            assert!(
                open <= end.connections().max(1) * streams + input.steps.len(),
                "{open}"
            );
            assert!(is_damaged || end.stream_check().mismatches == 0);
        }
    }
}
