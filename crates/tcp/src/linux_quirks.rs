//! Behaviour in which Linux differs from the RFCs and which is no setting of its own.

/// Linux behaviours, each named after what it does where it is enabled; false follows the RFCs. A
/// profile sets all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinuxQuirks {
    /// Accepts a segment without timestamps although they were negotiated (RFC 7323 section 3.2
    /// drops it).
    pub accepts_missing_timestamps: bool,
    /// Answers acknowledgments of data never sent at most once in half a second, with or without
    /// data (`tcp_ack` of Linux 6.18.38; RFC 5961 section 7 leaves open which answers are limited).
    pub rate_limits_challenge_acks: bool,
    /// During the handshake, refuses an acknowledgment whose timestamp echoes none of our SYNs.
    pub checks_syn_timestamp_echo: bool,
    /// Delays the acknowledgment of a SYN+ACK if there is data to send, which carries it.
    pub delays_handshake_ack: bool,
    /// Delays acknowledgments at an end that answers received data ("pingpong mode").
    pub pingpong_mode: bool,
    /// A soft ICMP error ends a handshake as a hard one does, so that an application tries the next
    /// address (RFC 5461 section 4.1; RFC 1122 section 4.2.3.9 continues).
    pub soft_errors_end_handshake: bool,
    /// Only soft ICMP errors end a passive handshake: whatever the client's port or filters report,
    /// the client may still answer (`tcp_v4_err`).
    pub ignores_client_port_errors: bool,
    /// A path MTU search at the passive end starts with the negotiated segment size
    /// (RFC 4821 section 7.3 starts with the base size).
    pub server_starts_at_negotiated_mss: bool,
    /// Probes a closed window with an old sequence number and no payload, rather than with the next
    /// byte (RFC 9293 section 3.8.6.1).
    pub sends_empty_probes: bool,
    /// Sends bursts of several segments: small bursts are deferred (`tcp_tso_should_defer`), and
    /// the last segment has PSH. After a reduction of the path MTU, data is split buffer by buffer
    /// (`tcp_fragment`).
    pub sends_in_bursts: bool,
    /// Checks for an application limit at writes, not on acknowledgments.
    pub checks_app_limit_at_writes: bool,
    /// A loss reduces the congestion window, whatever is in flight (RFC 5681 section 3.1 and
    /// RFC 9438 section 4.6 start from the bytes in flight).
    pub reduces_from_window: bool,
    /// The acknowledgment that ends recovery grows the window, as later ones do.
    pub grows_on_recovery_exit: bool,
    /// RACK uses the round trip of the acknowledged segment that is highest in sequence, or else of
    /// the highest SACKed one (RFC 8985 section 6.2: of the latest transmission).
    pub rack_times_highest_sequence: bool,
    /// A retransmitted segment that is SACKed counts as delivered by its last transmission,
    /// whatever the timestamp echo, unless it was too soon (tcp_rack_advance;
    /// RFC 8985 section 6.2 step 2 uses the echo, which is outdated while there is a gap).
    pub ignores_echo_of_sacked: bool,
    /// A D-SACK of a segment that was SACKed and retransmitted raises the reordering degree
    /// (tcp_sacktag_one).
    pub learns_reordering_from_dsack: bool,
    /// SACKed data grows the window while the reordering degree is above three segments.
    pub grows_while_reordered: bool,
    /// When a late original fills a gap in recovery, the reduction is undone once no retransmission
    /// is in flight (tcp_try_undo_partial; RFC 3522 does so at once).
    pub undoes_without_retransmissions_out: bool,
    /// D-SACKs widen RACK's window only after reordering was observed.
    pub dsack_widens_only_after_reordering: bool,
    /// Loss recovery timers have the kernel's granularity: ticks of 250 Hz, and coarser for longer
    /// times (`TCP_TIMEOUT_MIN_US`, `calc_wheel_index`). They share one timer, with one purpose at
    /// a time (`icsk_pending`).
    pub timer_ticks: bool,
    /// A tail loss probe of old data is no retransmission: it does not count as further data in
    /// flight, and needs no D-SACK before an undo (`tcp_send_loss_probe`, which calls
    /// `__tcp_retransmit_skb`). A D-SACK of it still counts for another retransmission
    /// (`tcp_sacktag_one`). While a probe is outstanding, the timer is set for another, which is
    /// not sent (`tcp_schedule_loss_probe`).
    pub probes_are_no_retransmissions: bool,
    /// Any acknowledgment of original data after a timeout shows that the timeout was spurious,
    /// even the first, and one that covers everything (`FLAG_ORIG_SACK_ACKED` in
    /// `tcp_process_loss`). RFC 5682 section 3.1 step 2 waits for the second, and takes one that
    /// covers everything for a recovery.
    pub any_original_shows_spurious_timeout: bool,
    /// Duplicates reported by a D-SACK count as delivered data if they are due to retransmissions.
    pub counts_duplicates_as_delivered: bool,
    /// Without SACK, duplicate acknowledgments count as SACKed segments: in flight, window
    /// reduction and retransmissions after a timeout are as with SACK (`tcp_add_reno_sack`).
    /// RFC 6582 inflates the window and goes back to SND.UNA.
    pub counts_duplicates_as_sacks: bool,
    /// Accepts a segment that ends beyond the window as a whole if all in-order data was read, and
    /// otherwise refuses it, with its acknowledgment (`tcp_sequence` of Linux 6.17;
    /// RFC 9293 section 3.10.7.4 trims it to the window).
    pub accepts_beyond_window: bool,
    /// SACK blocks reduce the payload of a data segment by their actual size, however short it
    /// becomes (`tcp_current_mss`). Otherwise room for the maximum is reserved, or none.
    pub fits_sack_blocks: bool,
    /// SACK blocks are only merged with one of the four remembered blocks; a segment that touches
    /// none of them is reported as a block of its own (`tcp_sack_new_ofo_skb`). By
    /// RFC 2018 section 3 a block is a contiguous range.
    pub remembers_four_sack_blocks: bool,
    /// An out-of-order FIN is reported in SACK blocks like data (`tcp_data_queue_ofo`).
    pub sacks_fin: bool,
    /// After a timeout, a FIN without data waits until the congestion window admits a segment, as
    /// observed with Linux 6.18; otherwise it is sent in any case.
    pub fin_waits_for_window: bool,
    /// A segment not newer than the last window update does not shrink the window, unless it closes
    /// it (`tcp_may_update_window`; RFC 9293 section 3.10.7.4 uses the latest one).
    pub ignores_window_shrink: bool,
    /// Probes a window that closed over sent data with a whole segment, which counts as lost
    /// (`tcp_retransmit_timer`, `__tcp_retransmit_skb`; RFC 9293 section 3.8.6.1 probes with one
    /// byte).
    pub probes_with_segment: bool,
    /// A segment that confirms a closed window restarts the probe timer (`tcp_ack_probe`).
    pub restarts_probe_timer: bool,
    /// With window scaling, a right edge less than one unit below SND.NXT counts as rounded, not as
    /// shrunk (`tcp_acceptable_seq`).
    pub tolerates_window_rounding: bool,
    /// The congestion window counts whole segments: it grows by segments (`tcp_clean_rtx_queue`;
    /// RFC 3465 counts bytes), and a short one in flight counts as a full one
    /// (`tcp_packets_in_flight`). Nagle's algorithm does not wait for short retransmissions
    /// (`tcp_minshall_update`).
    pub counts_short_segments: bool,
    /// Retransmits only the part of a segment that a shrunk window admits (`__tcp_retransmit_skb`).
    pub cuts_retransmissions_at_window: bool,
    /// A FIN sent after the data is retransmitted by itself; but a short retransmission takes in
    /// the segments that follow, also a FIN, up to a full one (`tcp_retrans_try_collapse`).
    pub collapses_retransmissions: bool,
    /// A timeout in fast recovery keeps the slow-start threshold, however little is outstanding
    /// (`tcp_enter_loss`).
    pub keeps_threshold_in_recovery: bool,
    /// CWR is ignored on a segment with an old acknowledgment (`tcp_ecn_accept_cwr`).
    pub ignores_cwr_of_old_acks: bool,
    /// An ECN mark reduces the window proportionally, like a loss, and holds it until more than the
    /// data sent so far is acknowledged (`tcp_enter_cwr`; RFC 3168 section 6.1.2 halves it at
    /// once). Such a reduction is not undone.
    pub reduces_gradually_for_marks: bool,
    /// The keep-alive timer runs from its activation, or from the last probe. Only at its expiry
    /// are the idle time and the outstanding data checked (`tcp_keepalive_timer`).
    pub kernel_keep_alive_timer: bool,
    /// A single lost SYN or SYN+ACK does not reduce the initial window to one segment; two do
    /// (`tcp_init_transfer`; RFC 5681 section 3.1 counts the first as a loss).
    pub tolerates_one_lost_syn: bool,
    /// The first four SYN retransmissions are evenly spaced and do not count against the maximum
    /// (`tcp_syn_linear_timeouts`; RFC 6298 section 5.5 doubles the time). Not if the application
    /// sets the maximum.
    pub linear_syn_timeouts: bool,
    /// A client whose SYN was answered with an unacceptable acknowledgment retransmits it at once,
    /// the first time (`tcp_rcv_synsent_state_process`).
    pub resends_syn_after_bad_ack: bool,
    /// In a simultaneous open, the SYN+ACK repeats the options of the SYN, whatever the peer
    /// offered, does not restart the timer, and replaces the SYN in the round-trip measurement
    /// (`tcp_send_synack`). A repeated SYN is answered with a challenge ACK, and the peer's SYN+ACK
    /// with a D-SACK. The latter's window is scaled like any other (`tcp_rcv_state_process`).
    pub simultaneous_open_repeats_options: bool,
    /// Before a passive connection is established, an unacceptable segment is answered with an
    /// acknowledgment, also an old SYN+ACK; and a repeated SYN postpones the SYN+ACK
    /// (`tcp_check_req`).
    pub answers_as_listener: bool,
    /// At a passive end, the window of the SYN does not count for the maximum window until it is
    /// advertised again (`tcp_ack_update_window`; 0 in `tcp_create_openreq_child`).
    pub ignores_syn_window_maximum: bool,
    /// If the first ten segments are not paced, the buffer with the tenth is: the next segment
    /// waits for its transmission time (`tcp_update_skb_after_send`). Otherwise the eleventh does
    /// not wait.
    pub paces_tenth_segment: bool,
    /// An old acknowledgment without data whose timestamp is outdated is not answered
    /// (`tcp_disordered_ack_check`; RFC 7323 section 5.3 answers whatever fails PAWS).
    pub ignores_old_acks_failing_paws: bool,
    /// The RST of an aborting application carries SACK blocks, as any segment does
    /// (`tcp_send_active_reset`).
    pub sends_sack_in_reset: bool,
    /// CUBIC computes with whole segments and ticks, and grows by at least 5% per round trip before
    /// the first loss.
    pub integer_cubic: bool,
}

impl LinuxQuirks {
    /// The behaviour of the RFCs.
    pub const NONE: Self = Self::all(false);
    /// The behaviour of Linux.
    pub const ALL: Self = Self::all(true);

    const fn all(linux: bool) -> Self {
        Self {
            accepts_missing_timestamps: linux,
            rate_limits_challenge_acks: linux,
            checks_syn_timestamp_echo: linux,
            delays_handshake_ack: linux,
            pingpong_mode: linux,
            soft_errors_end_handshake: linux,
            ignores_client_port_errors: linux,
            server_starts_at_negotiated_mss: linux,
            sends_empty_probes: linux,
            sends_in_bursts: linux,
            checks_app_limit_at_writes: linux,
            reduces_from_window: linux,
            grows_on_recovery_exit: linux,
            rack_times_highest_sequence: linux,
            ignores_echo_of_sacked: linux,
            learns_reordering_from_dsack: linux,
            grows_while_reordered: linux,
            undoes_without_retransmissions_out: linux,
            dsack_widens_only_after_reordering: linux,
            timer_ticks: linux,
            probes_are_no_retransmissions: linux,
            any_original_shows_spurious_timeout: linux,
            counts_duplicates_as_delivered: linux,
            counts_duplicates_as_sacks: linux,
            accepts_beyond_window: linux,
            remembers_four_sack_blocks: linux,
            sacks_fin: linux,
            fits_sack_blocks: linux,
            fin_waits_for_window: linux,
            ignores_window_shrink: linux,
            probes_with_segment: linux,
            restarts_probe_timer: linux,
            tolerates_window_rounding: linux,
            collapses_retransmissions: linux,
            counts_short_segments: linux,
            cuts_retransmissions_at_window: linux,
            keeps_threshold_in_recovery: linux,
            ignores_cwr_of_old_acks: linux,
            reduces_gradually_for_marks: linux,
            kernel_keep_alive_timer: linux,
            tolerates_one_lost_syn: linux,
            linear_syn_timeouts: linux,
            resends_syn_after_bad_ack: linux,
            simultaneous_open_repeats_options: linux,
            answers_as_listener: linux,
            ignores_syn_window_maximum: linux,
            paces_tenth_segment: linux,
            ignores_old_acks_failing_paws: linux,
            sends_sack_in_reset: linux,
            integer_cubic: linux,
        }
    }
}

impl Default for LinuxQuirks {
    fn default() -> Self {
        Self::NONE
    }
}
