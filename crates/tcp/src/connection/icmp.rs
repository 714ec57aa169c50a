//! ICMP errors about segments of a connection (RFC 9293 section 3.9.2.2, RFC 1122 section 4.2.3.9,
//! RFC 5461, RFC 5927).

use bentpipe_types::{Ctx, IcmpError, Seq};

use super::timers::Purpose;
use super::{Connection, Events, PathLimit, State};

impl Connection {
    /// Processes an ICMP error that quotes a segment of ours with this sequence number.
    ///
    /// An off-path attacker has to guess the number: only errors about outstanding data count
    /// (RFC 5927 section 4.1). Returns a new path MTU, for other connections to the same host.
    pub fn on_icmp(
        &mut self,
        error: IcmpError,
        sequence: Seq,
        cx: &mut Ctx<'_>,
    ) -> Option<PathLimit> {
        let (distance, outstanding) = self.quoted_distance(sequence);
        let over = matches!(self.state, State::Closed | State::TimeWait);
        let of_ours = if self.is_half_open() {
            // tcp_req_err in Linux: only the SYN+ACK counts, not the answer to a segment that opens
            // no connection.
            distance == 0
        } else {
            (0..=outstanding).contains(&distance)
        };
        if over || !of_ours {
            self.sender.statistics.icmp_ignored += 1;
            return None;
        }
        self.sender.statistics.icmp_errors += 1;
        if let IcmpError::TooBig { mtu } = error {
            return self.too_big(mtu, cx);
        }
        self.path_error = Some(error);
        match self.state {
            State::SynSent => {
                if self.ends_handshake(error) {
                    self.enter_closed(Events::UNREACHABLE, cx.now);
                }
            }
            State::SynReceived => {
                let unborn = self.is_half_open();
                let why = if unborn {
                    Events::NONE
                } else {
                    Events::UNREACHABLE
                };
                // tcp_v4_err in Linux: whatever the client's port or filters report about a
                // SYN+ACK, the client may still answer.
                let ends = if unborn && self.quirks().handshake.ignores_client_port_errors {
                    !error.is_hard() && error != IcmpError::Prohibited
                } else {
                    self.ends_handshake(error)
                };
                if ends {
                    self.enter_closed(why, cx.now);
                }
            }
            // RFC 5927 section 5.2 and Linux: in a synchronized state, no error is hard. A lasting
            // failure shows as a timeout.
            _ => {
                let routing = matches!(
                    error,
                    IcmpError::NetworkUnreachable | IcmpError::HostUnreachable
                );
                if routing && distance == 0 {
                    self.undo_backoff(cx);
                }
            }
        }
        None
    }

    /// Distance of a sequence number from SND.UNA, and the amount outstanding.
    fn quoted_distance(&self, sequence: Seq) -> (i64, i64) {
        let send = &self.sender.send;
        let first = send.wire(send.sequence.unacknowledged);
        let distance = i64::from(sequence.distance_from(first));
        (distance, send.sequence.outstanding_ever() as i64)
    }

    /// Whether an ICMP error that quotes this sequence number may concern outstanding data, or a
    /// keep-alive probe (RFC 1122 section 4.2.3.6), which has the number before SND.UNA.
    #[must_use]
    pub fn concerns_outstanding_data(&self, sequence: Seq) -> bool {
        let (distance, outstanding) = self.quoted_distance(sequence);
        (-1..=outstanding).contains(&distance)
    }

    /// The last ICMP error since the peer last acknowledged new data, except "packet too big".
    /// RFC 9293 section 3.9.1.8: soft errors are reported to the application, which asks for them.
    #[must_use]
    pub fn path_error(&self) -> Option<IcmpError> {
        self.path_error
    }

    /// Whether the handshake of a passive open is incomplete, so that no application has the
    /// connection.
    pub(super) fn is_half_open(&self) -> bool {
        self.state == State::SynReceived && self.passive && !self.fast_open.taken
    }

    /// RFC 1122 section 4.2.3.9: hard errors end a connection, soft errors do not
    /// (RFC 9293 section 3.9.2.2: an implementation "MUST NOT abort the connection" for them).
    /// Linux and BSD end a handshake for both, so that an application tries the next address
    /// (RFC 5461 section 4.1).
    fn ends_handshake(&self, error: IcmpError) -> bool {
        error.is_hard() || self.quirks().handshake.soft_errors_end
    }

    /// RFC 6069: a retransmission was lost for lack of a route, not to congestion. The backoff is
    /// undone, so that the connection continues soon after the route is back.
    fn undo_backoff(&mut self, cx: &Ctx<'_>) {
        if self.sender.send.attempts == 0 || !self.sender.timers.retransmits() {
            return;
        }
        if !self.sender.rtt.undo_backoff() {
            return;
        }
        self.sender.send.excused += 1;
        let sent_at = self.sender.scoreboard.first_sent_at().unwrap_or(cx.now);
        let at = (sent_at + self.sender.rtt.rto()).max(cx.now);
        self.sender.timers.set(Purpose::Retransmit, at);
    }
}
