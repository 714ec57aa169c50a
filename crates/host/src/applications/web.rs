//! Web pages: HTTP over TLS over TCP, by the bytes and round trips they take.

use std::collections::{BTreeMap, VecDeque};

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use super::orders::{Order, Orders};
use super::pages::{Object, PageModel};
use crate::report::{Page, Pages};
use crate::{Application, Distribution, Report, SocketId, Standing, Workplace, World};

/// How objects share connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Http {
    /// HTTP/1.1: one request at a time on each of up to six persistent connections, as browsers have
    /// it.
    One,
    /// HTTP/2: all requests at once on one connection, answered in the order in which they were made (as
    /// Chromium orders those of equal urgency).
    Two,
}

/// The handshake after TCP's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tls {
    /// None: `http:`.
    Off,
    /// RFC 5246: two round trips; one with a session that is resumed.
    V1_2,
    /// RFC 8446: one round trip, resumed or not.
    V1_3,
}

/// What is loaded, and how.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WebSettings {
    /// HTTP's version.
    pub http: Http,
    /// TLS.
    pub tls: Tls,
    /// The first connection resumes a session of an earlier visit; later ones always do.
    pub resumption: bool,
    /// Pages.
    pub page: PageModel,
    /// Levels on which objects are found.
    pub levels: u32,
    /// Bytes of a request.
    pub request: u64,
    /// How long the server thinks about a request.
    pub think: Span,
    /// Seconds from a page's end to the next navigation.
    pub reading: Distribution,
    /// Pages; `None`: until the end of the run.
    pub count: Option<u64>,
}

/// RFC 2616 section 8.1.4 said two; browsers have six.
const CONNECTIONS: usize = 6;

/// How long until a connection is tried again for which there was no port.
const AGAIN: Span = Span::from_secs(1);

/// A flight of the client's and the server's answer, in bytes.
type Exchange = (u64, u64);

/// The flights of a handshake, of usual lengths: a ClientHello that is padded to 517 bytes (RFC 7685), a
/// certificate chain of about 3 kB. Returns them and the bytes that the client sends last, which go with its
/// first request.
fn handshake(tls: Tls, resumes: bool) -> (&'static [Exchange], u64) {
    match (tls, resumes) {
        (Tls::Off, _) => (&[], 0),
        // RFC 8446 section 2: the server's flight is ServerHello to Finished, the client's last its
        // Finished.
        (Tls::V1_3, false) => (&[(517, 3_600)], 80),
        // Section 2.2: no certificate
        (Tls::V1_3, true) => (&[(600, 250)], 80),
        // RFC 5246 section 7.3: ServerHello to ServerHelloDone; ClientKeyExchange to Finished
        (Tls::V1_2, false) => (&[(250, 3_500), (126, 51)], 0),
        // Abbreviated: the server finishes first.
        (Tls::V1_2, true) => (&[(500, 150)], 51),
    }
}

/// A connection to the server.
#[derive(Debug)]
struct Line {
    /// Of the browser's connections, in the order in which it opened them.
    number: u64,
    port: u16,
    established: bool,
    /// The handshake's exchanges that are still to come.
    exchanges: &'static [Exchange],
    /// Bytes that go with the next request.
    more: u64,
    /// What is to come on it: which object (none: the handshake's), and its bytes that are missing.
    expected: VecDeque<(Option<usize>, u64)>,
}

impl Line {
    fn is_ready(&self) -> bool {
        self.established && self.exchanges.is_empty() && self.expected.iter().all(|e| e.0.is_some())
    }
}

/// A page that is being loaded.
#[derive(Debug)]
struct Loading {
    start: Time,
    first_byte: Option<Time>,
    objects: Vec<Object>,
    missing: usize,
}

/// A browser.
#[derive(Debug)]
pub(super) struct Web {
    server: Endpoint,
    settings: WebSettings,
    orders: Orders,
    lines: BTreeMap<SocketId, Line>,
    /// Connections opened.
    opened: u64,
    visited: bool,
    loading: Option<Loading>,
    /// Objects to be asked for.
    wanted: VecDeque<usize>,
    standing: Standing,
    pages: Pages,
}

impl Web {
    pub(super) fn new(server: Endpoint, settings: WebSettings, orders: Orders) -> Self {
        Self {
            server,
            settings,
            orders,
            lines: BTreeMap::new(),
            opened: 0,
            visited: settings.resumption,
            loading: None,
            wanted: VecDeque::new(),
            standing: Standing::default(),
            pages: Pages::default(),
        }
    }

    fn navigate<D: Workplace>(&mut self, desk: &mut D) {
        let objects = self.settings.page.draw(self.settings.levels, desk.random());
        self.pages.begun += 1;
        self.loading = Some(Loading {
            start: desk.now(),
            first_byte: None,
            missing: objects.len(),
            objects,
        });
        self.wanted.clear();
        self.wanted.push_back(0);
        self.dispatch(desk);
    }

    /// Asks for what is wanted, as far as connections allow; opens those that are missing.
    fn dispatch<D: Workplace>(&mut self, desk: &mut D) {
        let one_at_a_time = self.settings.http == Http::One;
        while let Some(&object) = self.wanted.front() {
            // The oldest: the order of places in the host's table is other flows' doing, too.
            let lines = self.lines.iter();
            let free = lines
                .filter(|(_, line)| line.is_ready() && (line.expected.is_empty() || !one_at_a_time))
                .min_by_key(|(_, line)| line.number);
            let Some(socket) = free.map(|(socket, _)| *socket) else {
                break;
            };
            self.wanted.pop_front();
            self.request(socket, object, desk);
        }
        let coming = self.lines.values().filter(|line| !line.is_ready()).count();
        let most = if one_at_a_time { CONNECTIONS } else { 1 };
        let wanted = self.wanted.len().saturating_sub(coming);
        for _ in 0..wanted.min(most - self.lines.len().min(most)) {
            self.open(desk);
        }
    }

    fn open<D: Workplace>(&mut self, desk: &mut D) {
        let Ok(socket) = desk.connect(self.server) else {
            // All ports are in TIME-WAIT, say: without any connection, it is tried again.
            self.standing.next = self.lines.is_empty().then(|| desk.now() + AGAIN);
            return;
        };
        self.standing.next = None;
        desk.no_delay(socket);
        let port = desk.local(socket).map_or(0, |end| end.port);
        let (exchanges, more) = handshake(self.settings.tls, self.visited);
        self.opened += 1;
        let line = Line {
            number: self.opened,
            port,
            established: false,
            exchanges,
            more,
            expected: VecDeque::new(),
        };
        self.lines.insert(socket, line);
    }

    fn request<D: Workplace>(&mut self, socket: SocketId, object: usize, desk: &mut D) {
        let (Some(line), Some(loading)) = (self.lines.get_mut(&socket), &self.loading) else {
            return;
        };
        let size = loading.objects[object].size;
        let request = self.settings.request + std::mem::take(&mut line.more);
        let order = Order {
            request,
            response: size,
            think: self.settings.think,
        };
        self.orders.place(line.port, order);
        line.expected.push_back((Some(object), size));
        desk.feed(socket, request, false);
    }

    /// The handshake's next exchange, if there is one.
    fn shake_hands<D: Workplace>(&mut self, socket: SocketId, desk: &mut D) {
        let Some(line) = self.lines.get_mut(&socket) else {
            return;
        };
        let Some(((request, response), rest)) = line.exchanges.split_first() else {
            // A connection that stands can be resumed.
            self.visited = true;
            return;
        };
        line.exchanges = rest;
        let order = Order {
            request: *request,
            response: *response,
            think: Span::ZERO,
        };
        self.orders.place(line.port, order);
        line.expected.push_back((None, *response));
        desk.feed(socket, *request, false);
    }

    /// So many bytes have come on a connection.
    fn take<D: Workplace>(&mut self, socket: SocketId, mut bytes: u64, desk: &mut D) {
        while bytes > 0 {
            let Some(line) = self.lines.get_mut(&socket) else {
                return;
            };
            let Some((what, missing)) = line.expected.front_mut() else {
                debug_assert!(false, "bytes that nobody asked for");
                return;
            };
            if let (Some(0), Some(loading)) = (*what, &mut self.loading) {
                loading.first_byte.get_or_insert(desk.now());
            }
            let part = bytes.min(*missing);
            bytes -= part;
            *missing -= part;
            if *missing > 0 {
                return;
            }
            let what = *what;
            line.expected.pop_front();
            match what {
                None => self.shake_hands(socket, desk),
                Some(object) => self.arrived(object, desk),
            }
        }
    }

    /// An object is there: what it names is wanted now, and the page may be complete.
    fn arrived<D: Workplace>(&mut self, object: usize, desk: &mut D) {
        let Some(loading) = &mut self.loading else {
            return;
        };
        loading.missing -= 1;
        let children = loading.objects.iter().enumerate();
        let children = children.filter(|(_, child)| child.parent == Some(object));
        self.wanted.extend(children.map(|(index, _)| index));
        if loading.missing > 0 {
            return;
        }
        let now = desk.now();
        let load = now.since(loading.start);
        self.standing.latest = Some(load);
        self.pages.loaded.push(Page {
            start: loading.start,
            first_byte: loading.first_byte.unwrap_or(now).since(loading.start),
            load,
            objects: loading.objects.len() as u32,
            bytes: loading.objects.iter().map(|object| object.size).sum(),
        });
        self.loading = None;
        if self.settings.count == Some(self.pages.loaded.len() as u64) {
            self.standing.finished = Some(now);
            let mut sockets: Vec<_> = self
                .lines
                .iter()
                .map(|(id, line)| (line.number, *id))
                .collect();
            sockets.sort_unstable();
            for (_, socket) in sockets {
                desk.close(socket);
            }
        } else {
            self.standing.next = Some(now + self.settings.reading.span(desk.random()));
        }
    }

    /// A connection is gone: what was expected on it is asked for again, elsewhere.
    fn lost(&mut self, socket: SocketId) {
        let Some(line) = self.lines.remove(&socket) else {
            return;
        };
        self.orders.forget(line.port);
        let again = line.expected.iter().filter_map(|(object, _)| *object);
        self.wanted.extend(again);
    }
}

impl<P: World> Application<P> for Web {
    fn start(&mut self, desk: &mut P::Desk<'_, '_>) {
        self.navigate(desk);
    }

    fn on_events(&mut self, socket: SocketId, events: Events, desk: &mut P::Desk<'_, '_>) {
        if events.has(Events::ESTABLISHED) {
            if let Some(line) = self.lines.get_mut(&socket) {
                line.established = true;
            }
            self.shake_hands(socket, desk);
        }
        let read = desk.read(socket, u64::MAX);
        self.take(socket, read, desk);
        if events.has(Events::PEER_CLOSED) {
            desk.close(socket);
        }
        if events.has(Events::CLOSED) {
            let opened = self.lines.get(&socket).is_some_and(|line| line.established);
            self.lost(socket);
            if !opened {
                // Refused, or nobody there: trying again would go on for ever.
                self.wanted.clear();
            }
        }
        if self.loading.is_some() {
            self.dispatch(desk);
        }
    }

    fn on_deadline(&mut self, desk: &mut P::Desk<'_, '_>) {
        if self.standing.takes_turn(desk.now()) {
            if self.loading.is_some() {
                self.dispatch(desk);
            } else {
                self.navigate(desk);
            }
        }
    }

    fn speaks_first(&self) -> bool {
        true
    }

    fn standing(&self) -> Standing {
        self.standing
    }

    fn report(&self, _: Time, report: &mut Report) {
        report.finished = self.standing.finished;
        report.pages = Some(self.pages.clone());
    }
}
