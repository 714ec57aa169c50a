//! What a connection does where Linux and the RFCs differ and nobody would want a setting for it.

/// Each habit by what it does where it acts; false is what the RFCs say. A profile sets them all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Habits {
    /// A segment without timestamps is taken, although they were negotiated (RFC 7323 section 3.2 drops
    /// it).
    pub takes_unstamped: bool,
    /// Whatever acknowledges what was never sent is answered once in half a second at most, text or not (`tcp_ack` of
    /// Linux 6.18.38; RFC 5961 section 7 leaves open what is limited).
    pub limits_challenges: bool,
    /// While a connection is opened, an acknowledgment whose timestamp echoes none of our SYNs is refused.
    pub refuses_foreign_echoes: bool,
    /// A SYN+ACK is not acknowledged at once by an end that has something to send, which will.
    pub acknowledges_with_data: bool,
    /// An end that answers what it was sent delays its acknowledgments ("pingpong mode").
    pub recognises_dialogue: bool,
    /// A soft error from a router ends a handshake as a hard one does, so that an application tries the
    /// next address (RFC 5461 section 4.1; RFC 1122 section 4.2.3.9 goes on).
    pub heeds_soft_errors: bool,
    /// A handshake that a listening host has not finished ends by soft errors only: whatever a client's
    /// port or filter says, the client may still answer (`tcp_v4_err`).
    pub lets_clients_answer: bool,
    /// A search for the path's MTU begins, at the end that was called, with what both ends agreed on (RFC
    /// 4821 section 7.3 begins with the base).
    pub trusts_path_as_server: bool,
    /// A probe of a closed window is an old sequence number without payload, rather than the first byte
    /// that waits (RFC 9293 section 3.8.6.1).
    pub sends_empty_probes: bool,
    /// Segments leave several at once: a few wait for more to leave with (`tcp_tso_should_defer`), and the
    /// last of them has PSH. What is too long for the path is cut anew buffer by buffer (`tcp_fragment`).
    pub sends_in_bursts: bool,
    /// Whether the application is what limits the sender is asked when it writes, not when acknowledgments
    /// arrive.
    pub asks_limit_at_writes: bool,
    /// A loss reduces the congestion window, whatever is in flight (RFC 5681 section 3.1 and RFC 9438
    /// section 4.6 reduce what is in flight).
    pub reduces_window: bool,
    /// The acknowledgment that ends recovery grows the window, too, as any does after it.
    pub counts_last_of_recovery: bool,
    /// RACK goes by the round trip of what of an acknowledgment is highest in sequence, or acknowledged rather than SACKed
    /// (RFC 8985 section 6.2: by that of what left last).
    pub times_last_in_sequence: bool,
    /// What was sent again and is SACKed is taken for the last transmission, whatever the acknowledgment echoes, unless
    /// it came too soon (tcp_rack_advance; RFC 8985 section 6.2 step 2 asks the echo, which is an old one while there is
    /// a gap).
    pub ignores_echo_of_sacked: bool,
    /// Where a D-SACK tells of what was SACKed before and sent again, segments come out of order by as much
    /// (tcp_sacktag_one).
    pub learns_from_duplicates: bool,
    /// What is SACKed grows the window, too, where segments come out of order by more than three.
    pub grows_while_reordered: bool,
    /// Where a late segment fills a gap in recovery, the reduction is taken back when no retransmission is under way any
    /// more (tcp_try_undo_partial; RFC 3522 does so at once).
    pub undoes_with_nothing_out: bool,
    /// RACK's window is widened for D-SACKs only where segments have been seen out of order.
    pub widens_for_reordering: bool,
    /// The timers of what may be lost go in ticks of a clock of 250 Hz, and coarser ones the longer they are
    /// (`TCP_TIMEOUT_MIN_US`, `calc_wheel_index`), and are one timer, for one purpose at a time (`icsk_pending`).
    pub times_in_ticks: bool,
    /// A tail loss probe that sends something again is no retransmission: it does not count in flight once more, and is none that
    /// a D-SACK has to explain before a reduction is taken back (`tcp_send_loss_probe`, which calls `__tcp_retransmit_skb`), but a D-SACK of it explains one (`tcp_sacktag_one`). And while one is under
    /// way the timer is set for another all the same, which is not sent (`tcp_schedule_loss_probe`).
    pub counts_no_probes: bool,
    /// Whatever acknowledges an original after a timeout tells that it was spurious: the first acknowledgment, too, and one that covers
    /// everything (`FLAG_ORIG_SACK_ACKED` of `tcp_process_loss`; RFC 5682 section 3.1 step 2 waits for the second, and
    /// takes what covers everything for a recovery).
    pub heeds_any_original: bool,
    /// What a D-SACK says has arrived twice, because it was sent again, is delivered like anything else.
    pub counts_spurious: bool,
    /// Without SACK, duplicate acknowledgments count as if they were SACKs: what is in flight, how far the window comes
    /// down and what goes again after a timeout is as with SACK (`tcp_add_reno_sack`; RFC 6582 inflates the window and
    /// goes back).
    pub counts_duplicates: bool,
    /// A segment that ends beyond the window is taken as it is if all that has come in order was read, and refused if not;
    /// what it acknowledges, too (`tcp_sequence` of Linux 6.17; RFC 9293 section 3.10.7.4 has it trimmed to the window).
    pub takes_whole_segments: bool,
    /// SACK blocks take as much of a segment with text as they are, however short it is (`tcp_current_mss`; else there is room for
    /// as many as there can be, or none).
    pub fits_blocks: bool,
    /// A segment ahead of a gap is told of as a part of one of the four blocks that are remembered, where it touches one, and else as
    /// a block of its own, whatever lies beside it (`tcp_sack_new_ofo_skb`; by RFC 2018 section 3 a block is all of what is contiguous).
    pub forgets_blocks: bool,
    /// A FIN ahead of a gap is told of by SACK blocks as text is, which it follows in sequence (`tcp_data_queue_ofo`).
    pub sacks_fin: bool,
    /// After a timeout a FIN without text waits until the congestion window lets a segment go, as dialogues with Linux 6.18
    /// show; else it goes whatever that says.
    pub counts_fin: bool,
    /// A segment that is no newer than what last told of the window does not make it smaller, unless it closes it
    /// (`tcp_may_update_window`; RFC 9293 section 3.10.7.4 takes what the last one of them says).
    pub keeps_window: bool,
    /// What a window that closed over it keeps from being taken is sent again as it was, a whole segment, and counts as
    /// lost (`tcp_retransmit_timer`, `__tcp_retransmit_skb`; RFC 9293 section 3.8.6.1 probes with a byte).
    pub probes_with_segment: bool,
    /// What tells that the window is still closed puts the next probe off (`tcp_ack_probe`).
    pub restarts_probe_timer: bool,
    /// Where both ends scale windows, a window that ends less than a unit of ours before what was sent last is taken for
    /// one that was rounded, not taken back (`tcp_acceptable_seq`).
    pub overlooks_rounding: bool,
    /// The window counts whole segments, whatever they hold: it grows by them (`tcp_clean_rtx_queue`; RFC 3465 counts bytes), and a
    /// short one in flight takes as much of it as a full one (`tcp_packets_in_flight`). What goes again is no short segment for
    /// Nagle's algorithm to wait for (`tcp_minshall_update`).
    pub counts_short_segments: bool,
    /// Of a segment that goes again, what the window has room for goes, since it was taken back (`__tcp_retransmit_skb`).
    pub cuts_for_window: bool,
    /// A FIN that left after the text goes again on its own; but a short segment that goes again takes in those that follow it, a
    /// FIN, too, as many as a full one holds (`tcp_retrans_try_collapse`).
    pub keeps_fin_apart: bool,
    /// A timeout in fast recovery leaves the threshold as the loss has made it, however little is outstanding (`tcp_enter_loss`).
    pub keeps_threshold_in_recovery: bool,
    /// That a window was reduced is not heard from a segment whose acknowledgment is an old one (`tcp_ecn_accept_cwr`).
    pub overlooks_old_cwr: bool,
    /// A mark makes the window come down as a loss does, proportionally, and holds it there until more than what was sent before
    /// is acknowledged (`tcp_enter_cwr`; RFC 3168 section 6.1.2 halves it at once). What is reduced so is not taken back.
    pub reduces_gradually_for_marks: bool,
    /// The timer of keep-alive runs from when it was asked for, or from the last probe, and asks only when it expires how long
    /// the peer has been silent, and whether anything is outstanding (`tcp_keepalive_timer`).
    pub keeps_alive_by_timer: bool,
    /// One lost SYN, or SYN+ACK, is no reason to begin with a window of one segment; two are (`tcp_init_transfer`; RFC 5681
    /// section 3.1 takes the first for a loss).
    pub forgives_lost_syn: bool,
    /// The first four SYNs that go again are as far apart as the first two and they are beside those that a connection may be opened
    /// with (`tcp_syn_linear_timeouts`; RFC 6298 section 5.5 doubles the time). Not where the application says how many.
    pub spaces_syns_evenly: bool,
    /// A client whose SYN was answered with a wrong acknowledgment sends it again at once, if it has not before
    /// (`tcp_rcv_synsent_state_process`).
    pub hurries_syn: bool,
    /// Where both open at once, the SYN+ACK offers what the SYN did, whatever the peer has offered, is no reason to set
    /// the timer anew, and is what the round trip is measured from (`tcp_send_synack`); a SYN that comes again is challenged, and the
    /// peer's SYN+ACK told of by a D-SACK. The window that this tells of is scaled like any other (`tcp_rcv_state_process`).
    pub repeats_offer: bool,
    /// An end that was called answers what is not in the window before the connection is established, a SYN+ACK in place of
    /// an acknowledgment, too; and a SYN that comes again puts its SYN+ACK off (`tcp_check_req`).
    pub answers_as_listener: bool,
    /// The window that the SYN offers is none of those of which the largest is remembered, at an end that was called, until it is offered
    /// again (`tcp_ack_update_window`; it is 0 in `tcp_create_openreq_child`).
    pub forgets_window_of_syn: bool,
    /// Where the first ten segments are not paced, the buffer with the tenth is: what follows waits as long as it takes at the
    /// pace (`tcp_update_skb_after_send`). Else the eleventh does not wait.
    pub paces_tenth_segment: bool,
    /// An acknowledgment without text that is old, and whose timestamp is older than the last, is not answered
    /// (`tcp_disordered_ack_check`; RFC 7323 section 5.3 answers whatever fails its test).
    pub overlooks_old_acknowledgments: bool,
    /// The RST with which an application ends a connection says what has come ahead of a gap, as any segment does
    /// (`tcp_send_active_reset`).
    pub tells_blocks_in_reset: bool,
    /// CUBIC counts in whole segments and whole ticks, and grows by 5% a round trip at least before the
    /// first loss.
    pub counts_cubic_in_whole_numbers: bool,
}

impl Habits {
    /// As the RFCs say.
    pub const RFC: Self = Self::all(false);
    /// As Linux has it.
    pub const LINUX: Self = Self::all(true);

    const fn all(linux: bool) -> Self {
        Self {
            takes_unstamped: linux,
            limits_challenges: linux,
            refuses_foreign_echoes: linux,
            acknowledges_with_data: linux,
            recognises_dialogue: linux,
            heeds_soft_errors: linux,
            lets_clients_answer: linux,
            trusts_path_as_server: linux,
            sends_empty_probes: linux,
            sends_in_bursts: linux,
            asks_limit_at_writes: linux,
            reduces_window: linux,
            counts_last_of_recovery: linux,
            times_last_in_sequence: linux,
            ignores_echo_of_sacked: linux,
            learns_from_duplicates: linux,
            grows_while_reordered: linux,
            undoes_with_nothing_out: linux,
            widens_for_reordering: linux,
            times_in_ticks: linux,
            counts_no_probes: linux,
            heeds_any_original: linux,
            counts_spurious: linux,
            counts_duplicates: linux,
            takes_whole_segments: linux,
            forgets_blocks: linux,
            sacks_fin: linux,
            fits_blocks: linux,
            counts_fin: linux,
            keeps_window: linux,
            probes_with_segment: linux,
            restarts_probe_timer: linux,
            overlooks_rounding: linux,
            keeps_fin_apart: linux,
            counts_short_segments: linux,
            cuts_for_window: linux,
            keeps_threshold_in_recovery: linux,
            overlooks_old_cwr: linux,
            reduces_gradually_for_marks: linux,
            keeps_alive_by_timer: linux,
            forgives_lost_syn: linux,
            spaces_syns_evenly: linux,
            hurries_syn: linux,
            repeats_offer: linux,
            answers_as_listener: linux,
            forgets_window_of_syn: linux,
            paces_tenth_segment: linux,
            overlooks_old_acknowledgments: linux,
            tells_blocks_in_reset: linux,
            counts_cubic_in_whole_numbers: linux,
        }
    }
}

impl Default for Habits {
    fn default() -> Self {
        Self::RFC
    }
}
