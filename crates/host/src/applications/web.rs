//! Web pages: HTTP over TLS over TCP, modelled by bytes and round trips.

use std::collections::{BTreeMap, VecDeque};

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use super::orders::{Order, Orders};
use super::pages::{Object, PageModel};
use crate::report::{Page, Pages};
use crate::{
    Application, ApplicationProgress, Distribution, Report, SocketApi, SocketBackend, SocketId,
};

/// Version of HTTP, which determines how objects share connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Http {
    /// HTTP/1.1: one request at a time on each of up to six persistent connections, as in browsers.
    One,
    /// HTTP/2: all requests at once on one connection, answered in order (as Chromium orders
    /// requests of equal urgency).
    Two,
    /// HTTP/3: a stream of one QUIC connection for each request. The transport has its own TLS.
    Three,
}

/// Version of TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tls {
    /// None: `http:`.
    Off,
    /// RFC 5246: two round trips, or one with a resumed session.
    V1_2,
    /// RFC 8446: one round trip, resumed or not.
    V1_3,
}

/// Settings of web pages.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WebSettings {
    /// Version of HTTP.
    pub http: Http,
    /// Version of TLS.
    pub tls: Tls,
    /// Whether the first connection resumes an earlier session; later ones always do.
    pub resumption: bool,
    /// Model of pages.
    pub page: PageModel,
    /// Number of levels of objects.
    pub levels: u32,
    /// Bytes of a request.
    pub request: u64,
    /// Think time of the server.
    pub think: Span,
    /// Seconds from the end of a page to the next.
    pub reading: Distribution,
    /// Number of pages, or `None` until the end of the run.
    pub count: Option<u64>,
}

/// Maximum number of requests at once over HTTP/3: usual servers admit as many streams.
const STREAMS: usize = 100;

/// Maximum number of connections: browsers use six (RFC 2616 section 8.1.4 said two).
const CONNECTIONS: usize = 6;

/// Time after which opening a connection is retried when there was no port.
const AGAIN: Span = Span::from_secs(1);

/// Bytes of a client's flight and of the server's answer.
type Exchange = (u64, u64);

/// Returns the flights of a handshake with usual lengths: a ClientHello padded to 517 bytes (RFC
/// 7685) and a certificate chain of about 3 kB. Also returns the bytes of the client's last flight,
/// which is sent with its first request.
fn handshake(tls: Tls, resumes: bool) -> (&'static [Exchange], u64) {
    match (tls, resumes) {
        (Tls::Off, _) => (&[], 0),
        // RFC 8446 section 2: the server's flight is ServerHello to Finished, the client's last one
        // its Finished.
        (Tls::V1_3, false) => (&[(517, 3_600)], 80),
        // RFC 8446 section 2.2: no certificate.
        (Tls::V1_3, true) => (&[(600, 250)], 80),
        // RFC 5246 section 7.3: ServerHello to ServerHelloDone; ClientKeyExchange to Finished.
        (Tls::V1_2, false) => (&[(250, 3_500), (126, 51)], 0),
        // Abbreviated handshake: the server finishes first.
        (Tls::V1_2, true) => (&[(500, 150)], 51),
    }
}

/// A connection to the server.
#[derive(Debug)]
struct Line {
    /// Number among the browser's connections, in the order of opening.
    number: u64,
    port: u16,
    established: bool,
    /// HTTP/3: its request was answered.
    answered: bool,
    /// Remaining exchanges of the handshake.
    exchanges: &'static [Exchange],
    /// Bytes that are sent with the next request.
    more: u64,
    /// Expected responses: object (`None` for the handshake) and missing bytes.
    expected: VecDeque<(Option<usize>, u64)>,
}

impl Line {
    fn is_ready(&self) -> bool {
        !self.answered
            && self.established
            && self.exchanges.is_empty()
            && self.expected.iter().all(|e| e.0.is_some())
    }
}

/// A page being loaded.
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
    /// Number of connections opened.
    opened: u64,
    visited: bool,
    loading: Option<Loading>,
    /// Objects to be requested.
    wanted: VecDeque<usize>,
    progress: ApplicationProgress,
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
            progress: ApplicationProgress::default(),
            pages: Pages::default(),
        }
    }

    fn navigate<D: SocketApi>(&mut self, api: &mut D) {
        let objects = self.settings.page.draw(self.settings.levels, api.random());
        self.pages.begun += 1;
        self.loading = Some(Loading {
            start: api.now(),
            first_byte: None,
            missing: objects.len(),
            objects,
        });
        self.wanted.clear();
        self.wanted.push_back(0);
        self.dispatch(api);
    }

    /// Requests objects as far as connections allow, and opens missing connections.
    fn dispatch<D: SocketApi>(&mut self, api: &mut D) {
        let one_at_a_time = self.settings.http != Http::Two;
        while let Some(&object) = self.wanted.front() {
            // The oldest free connection; the order of places in the host's table depends on other
            // flows.
            let lines = self.lines.iter();
            let free = lines
                .filter(|(_, line)| line.is_ready() && (line.expected.is_empty() || !one_at_a_time))
                .min_by_key(|(_, line)| line.number);
            let Some(socket) = free.map(|(socket, _)| *socket) else {
                break;
            };
            self.wanted.pop_front();
            self.request(socket, object, api);
        }
        let lines = self.lines.values().filter(|line| !line.answered);
        let coming = lines.clone().filter(|line| !line.is_ready()).count();
        let most = match self.settings.http {
            Http::One => CONNECTIONS,
            Http::Two => 1,
            Http::Three => STREAMS,
        };
        let wanted = self.wanted.len().saturating_sub(coming);
        for _ in 0..wanted.min(most - lines.count().min(most)) {
            self.open(api);
        }
    }

    fn open<D: SocketApi>(&mut self, api: &mut D) {
        let Ok(socket) = api.connect(self.server) else {
            // For example, all ports are in TIME-WAIT. Without any connection, opening is retried.
            self.progress.next = self.lines.is_empty().then(|| api.now() + AGAIN);
            return;
        };
        self.progress.next = None;
        api.no_delay(socket);
        let port = api.local(socket).map_or(0, |end| end.port);
        let (exchanges, more) = handshake(self.settings.tls, self.visited);
        self.opened += 1;
        let line = Line {
            number: self.opened,
            port,
            established: false,
            answered: false,
            exchanges,
            more,
            expected: VecDeque::new(),
        };
        self.lines.insert(socket, line);
    }

    fn request<D: SocketApi>(&mut self, socket: SocketId, object: usize, api: &mut D) {
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
        api.feed(socket, request, false);
    }

    /// Sends the next flight of the handshake, if any.
    fn shake_hands<D: SocketApi>(&mut self, socket: SocketId, api: &mut D) {
        let Some(line) = self.lines.get_mut(&socket) else {
            return;
        };
        let Some(((request, response), rest)) = line.exchanges.split_first() else {
            // An established session can be resumed.
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
        api.feed(socket, *request, false);
    }

    /// Handles bytes received on a connection.
    fn take<D: SocketApi>(&mut self, socket: SocketId, mut bytes: u64, api: &mut D) {
        while bytes > 0 {
            let Some(line) = self.lines.get_mut(&socket) else {
                return;
            };
            let Some((what, missing)) = line.expected.front_mut() else {
                debug_assert!(false, "bytes that nobody asked for");
                return;
            };
            if let (Some(0), Some(loading)) = (*what, &mut self.loading) {
                loading.first_byte.get_or_insert(api.now());
            }
            let part = bytes.min(*missing);
            bytes -= part;
            *missing -= part;
            if *missing > 0 {
                return;
            }
            let what = *what;
            line.expected.pop_front();
            if self.settings.http == Http::Three && what.is_some() {
                line.answered = true;
                api.close(socket);
            }
            match what {
                None => self.shake_hands(socket, api),
                Some(object) => self.arrived(object, api),
            }
        }
    }

    /// Handles a complete object: requests the objects that it refers to, and completes the page
    /// after the last one.
    fn arrived<D: SocketApi>(&mut self, object: usize, api: &mut D) {
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
        let now = api.now();
        let load = now.since(loading.start);
        self.progress.latest = Some(load);
        self.pages.loaded.push(Page {
            start: loading.start,
            first_byte: loading.first_byte.unwrap_or(now).since(loading.start),
            load,
            objects: loading.objects.len() as u32,
            bytes: loading.objects.iter().map(|object| object.size).sum(),
        });
        self.loading = None;
        if self.settings.count == Some(self.pages.loaded.len() as u64) {
            self.progress.finished = Some(now);
            let mut sockets: Vec<_> = self
                .lines
                .iter()
                .map(|(id, line)| (line.number, *id))
                .collect();
            sockets.sort_unstable();
            for (_, socket) in sockets {
                api.close(socket);
            }
        } else {
            self.progress.next = Some(now + self.settings.reading.span(api.random()));
        }
    }

    /// Handles a lost connection: its expected objects are requested again on another.
    fn lost(&mut self, socket: SocketId) {
        let Some(line) = self.lines.remove(&socket) else {
            return;
        };
        self.orders.forget(line.port);
        let again = line.expected.iter().filter_map(|(object, _)| *object);
        self.wanted.extend(again);
    }
}

impl<P: SocketBackend> Application<P> for Web {
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        self.navigate(api);
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>) {
        if events.has(Events::ESTABLISHED) {
            if let Some(line) = self.lines.get_mut(&socket) {
                line.established = true;
            }
            self.shake_hands(socket, api);
        }
        let read = api.read(socket, u64::MAX);
        self.take(socket, read, api);
        if events.has(Events::PEER_CLOSED) {
            api.close(socket);
        }
        if events.has(Events::CLOSED) {
            let opened = self.lines.get(&socket).is_some_and(|line| line.established);
            self.lost(socket);
            if !opened {
                // Refused or unreachable: retrying would not end.
                self.wanted.clear();
            }
        }
        if self.loading.is_some() {
            self.dispatch(api);
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        if self.progress.takes_turn(api.now()) {
            if self.loading.is_some() {
                self.dispatch(api);
            } else {
                self.navigate(api);
            }
        }
    }

    fn speaks_first(&self) -> bool {
        true
    }

    fn progress(&self) -> ApplicationProgress {
        self.progress
    }

    fn report(&self, _: Time, report: &mut Report) {
        report.finished = self.progress.finished;
        report.pages = Some(self.pages.clone());
    }
}
