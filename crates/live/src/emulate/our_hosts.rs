//! Hosts with our TCP (`--attach HOST=our`) in an emulated network.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_host::ApplicationId;
use bentpipe_tcp::Connection;
use bentpipe_types::{Agent, Ctx, Gauge, Holdings, PacketRef, Port, Routes, StreamCheck, Time};

use super::kernel::ApplicationResult;
use super::tcp_info::SenderSamples;
use crate::LiveHost;

/// A host of the network that other threads read. While the network runs, only its thread takes the
/// lock; it would be late otherwise.
#[derive(Clone, Debug)]
pub(crate) struct SharedHost {
    host: Arc<Mutex<LiveHost>>,
    gauges: &'static [Gauge],
}

impl SharedHost {
    pub(crate) fn new(host: LiveHost) -> Self {
        Self {
            gauges: host.gauges(),
            host: Arc::new(Mutex::new(host)),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, LiveHost> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent for SharedHost {
    fn routes(&mut self, routes: Routes) {
        self.lock().routes(routes);
    }

    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        self.lock().on_packet(from, packet, cx);
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        self.lock().on_deadline(cx);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.lock().next_deadline()
    }

    fn holdings(&self) -> Holdings {
        self.lock().holdings()
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.lock().counters(visit);
    }

    fn gauges(&self) -> &'static [Gauge] {
        self.gauges
    }

    fn gauge(&self, index: usize) -> f64 {
        self.lock().gauge(index)
    }

    fn stream_check(&self) -> StreamCheck {
        self.lock().stream_check()
    }

    fn is_quiet(&self) -> bool {
        self.lock().is_quiet()
    }
}

/// An end of a flow at a host with our TCP.
#[derive(Debug)]
pub(crate) struct OurEnd {
    pub(crate) flow: usize,
    pub(crate) is_opener: bool,
    pub(crate) host: SharedHost,
    pub(crate) application: ApplicationId,
    pub(crate) samples: SenderSamples,
    /// Points in time, and bytes delivered to it until then.
    curve: Vec<(Time, u64)>,
}

impl OurEnd {
    pub(crate) fn new(
        flow: usize,
        is_opener: bool,
        host: SharedHost,
        application: ApplicationId,
    ) -> Self {
        Self {
            flow,
            is_opener,
            host,
            application,
            samples: SenderSamples::default(),
            curve: Vec::new(),
        }
    }

    /// Samples the connection and the bytes delivered.
    pub(crate) fn sample(&mut self, now: Time) {
        let host = self.host.lock();
        let host = host.host();
        let began = |connection: &&Connection| connection.statistics().segments_received > 0;
        if let Some(connection) = host.connection(self.application).filter(began) {
            self.samples.add(now, connection);
        }
        let delivered = host.delivered(self.application);
        if delivered > self.curve.last().map_or(0, |(_, bytes)| *bytes) {
            self.curve.push((now, delivered));
        }
    }

    /// Returns the bytes delivered until the last sample.
    pub(crate) fn delivered(&self) -> u64 {
        self.curve.last().map_or(0, |(_, bytes)| *bytes)
    }

    /// Whether the application has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.host.lock().host().is_over(self.application)
    }

    /// Returns the results until now.
    pub(crate) fn result(&mut self, now: Time) -> ApplicationResult {
        let host = self.host.lock();
        let host = host.host();
        ApplicationResult {
            statistics: host.statistics(self.application),
            report: host.report(self.application, now).unwrap_or_default(),
            datagram_bytes: host.datagram_bytes(self.application),
            curve: std::mem::take(&mut self.curve),
            mismatch: None,
            lengthened: 0,
        }
    }
}
