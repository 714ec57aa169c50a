//! A gateway as a service: its sockets, its statistics file, and the service manager.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use caps::Capability;
use sd_notify::NotifyState;

use super::super::control_socket::{Listener, Sockets, is_loopback};
use super::super::operator::{Operator, reload_line};
use super::super::privileges;
use super::super::reload::Reloader;
use super::super::statistics::Totals;
use super::super::{Control, Plan, Request};
use super::console::CommandError;
use super::options::Options;
use super::scenario_source::reason;

/// Interval at which the statistics file is written.
const STORE_INTERVAL: Duration = Duration::from_secs(60);

/// Control socket, metrics and statistics file of a gateway. They run in other threads than the
/// engine.
pub(super) struct Service {
    listeners: Vec<Listener>,
    statistics: Option<PathBuf>,
    earlier: Totals,
}

impl Service {
    /// Opens the sockets and reads the statistics of earlier runs.
    pub(super) fn open(options: &Options) -> Result<Self, CommandError> {
        let mut listeners = Vec::new();
        if let Some(path) = &options.socket {
            let listener = Listener::control(path.as_ref()).map_err(|error| {
                let shown = PathBuf::from(path);
                CommandError::Request(format!("--socket {}: {}", shown.display(), reason(&error)))
            })?;
            listeners.push(listener);
        }
        if let Some(text) = &options.metrics {
            let address = text.parse().ok();
            let Some(address) = address.filter(|at: &std::net::SocketAddr| is_loopback(at.ip()))
            else {
                let message = format!(
                    "--metrics {text}: expected a loopback address and port, such as 127.0.0.1:9435"
                );
                return Err(CommandError::Request(message));
            };
            let listener = Listener::metrics(address).map_err(|error| {
                CommandError::Request(format!("--metrics {text}: {}", reason(&error)))
            })?;
            listeners.push(listener);
        }
        let statistics = options.statistics.as_ref().map(PathBuf::from);
        let earlier = match &statistics {
            None => Totals::default(),
            Some(path) => Totals::load(path).map_err(|error| {
                let (shown, why) = (path.display(), reason(&error));
                CommandError::Request(format!("--statistics {shown}: {why}"))
            })?,
        };
        Ok(Self {
            listeners,
            statistics,
            earlier,
        })
    }

    /// Serves the operator of a gateway that is about to run.
    pub(super) fn start(
        self,
        plan: &Plan,
        request: &Request,
        file: Option<(PathBuf, Vec<(String, String)>)>,
        control: &Arc<Control>,
    ) -> RunningService {
        let writes_files = self.statistics.is_some() || !request.options.captures.is_empty();
        let operator = Arc::new(Operator {
            control: Arc::clone(control),
            reloader: Reloader::new(plan, request, file),
            lines: plan.lines(),
            earlier: self.earlier,
            reloading: Mutex::new(()),
        });
        RunningService {
            _sockets: Sockets::serve(self.listeners, &operator, control.drops_privileges()),
            operator,
            statistics: self.statistics,
            next_store: now() + STORE_INTERVAL,
            next_sign: None,
            heartbeat: 0,
            is_ready: false,
            // Root may write captures and statistics to anybody's folder.
            kept: if writes_files {
                vec![Capability::CAP_DAC_OVERRIDE]
            } else {
                Vec::new()
            },
        }
    }
}

/// The service of a gateway that runs.
pub(super) struct RunningService {
    operator: Arc<Operator>,
    _sockets: Sockets,
    statistics: Option<PathBuf>,
    next_store: Instant,
    /// Time of the next sign of life for the service manager; `None` before the first.
    next_sign: Option<Instant>,
    heartbeat: u64,
    is_ready: bool,
    /// Capabilities that writing files may need.
    kept: Vec<Capability>,
}

impl RunningService {
    /// Does what is due. Called several times a second.
    pub(super) fn tick(&mut self) {
        let control = &self.operator.control;
        if !self.is_ready && control.is_ready() {
            self.is_ready = true;
            notify(&[NotifyState::Ready]);
            if control.drops_privileges() {
                privileges::keep_only(&self.kept);
            }
        }
        let now = now();
        if let Some(timeout) = sd_notify::watchdog_enabled() {
            let heartbeat = control.heartbeat();
            let is_due = self.next_sign.is_none_or(|at| now >= at);
            // The engine's thread counts at least every 20 ms. Without that, there is no sign.
            if is_due && heartbeat != self.heartbeat {
                self.heartbeat = heartbeat;
                self.next_sign = Some(now + timeout / 4);
                notify(&[NotifyState::Watchdog]);
            }
        }
        if self.statistics.is_some() && now >= self.next_store {
            self.next_store = now + STORE_INTERVAL;
            if let Ok(statistics) = self.operator.statistics() {
                self.store(&statistics.totals);
            }
        }
    }

    /// Reads the scenario file again.
    pub(super) fn reload(&self) {
        if let Ok(at) = NotifyState::monotonic_usec_now() {
            notify(&[NotifyState::Reloading, at]);
        }
        let result = self.operator.reload();
        let control = &self.operator.control;
        control.report(reload_line(&result));
        for note in result.unwrap_or_default() {
            control.report(note);
        }
        notify(&[NotifyState::Ready]);
    }

    /// Tells the service manager that the gateway is about to end.
    pub(super) fn announce_end(&self) {
        notify(&[NotifyState::Stopping]);
    }

    /// Writes the counters at the end.
    pub(super) fn finish(&self) {
        if let Some(statistics) = self.operator.control.last_statistics() {
            self.store(&self.operator.with_earlier(statistics).totals);
        }
    }

    fn store(&self, totals: &Totals) {
        let Some(path) = &self.statistics else { return };
        if let Err(error) = totals.store(path) {
            let (shown, why) = (path.display(), reason(&error));
            let line = format!("{shown}: {why}: the statistics were not saved");
            self.operator.control.report(line);
        }
    }
}

/// Notifies the service manager, if there is one (sd_notify(3)).
fn notify(state: &[NotifyState<'_>]) {
    // A service manager that is gone needs no notice.
    let _ = sd_notify::notify(state);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the service manager's time, not the network's"
)]
fn now() -> Instant {
    Instant::now()
}
