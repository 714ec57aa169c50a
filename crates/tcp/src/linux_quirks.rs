//! Behaviour in which Linux differs from the RFCs and which is no setting of its own.
//!
//! Each field is named after what it does where it is enabled; false follows the RFCs. A profile
//! sets all of them. Functions are those of Linux 6.18.

/// Defines structures of booleans, with constants that have none and all of them set.
macro_rules! quirks {
    ($($(#[$doc:meta])* $group:ident { $($(#[$field_doc:meta])* $field:ident,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $group {
            $($(#[$field_doc])* pub $field: bool,)+
        }

        impl $group {
            /// The behaviour of the RFCs.
            pub const NONE: Self = Self { $($field: false,)+ };
            /// The behaviour of Linux.
            pub const ALL: Self = Self { $($field: true,)+ };
        }
    )+};
}

quirks! {
    /// Handshake: SYNs, their options, and their timer.
    HandshakeQuirks {
        /// Refuses ACKs that echo the timestamp of no SYN (`tcp_rcv_synsent_state_process`).
        checks_syn_timestamp_echo,
        /// Delays the ACK of a SYN+ACK if data may carry it (`tcp_rcv_synsent_state_process`).
        delays_handshake_ack,
        /// A soft ICMP error ends a handshake, as a hard one does (`tcp_v4_err`; RFC 5461).
        soft_errors_end,
        /// Only soft ICMP errors end a passive handshake (`tcp_v4_err`).
        ignores_client_port_errors,
        /// Only a second lost SYN reduces the initial window (`tcp_init_transfer`).
        tolerates_one_lost_syn,
        /// The first four SYN timeouts do not back off (`tcp_syn_linear_timeouts`).
        linear_syn_timeouts,
        /// Repeats a SYN after an unacceptable ACK (`tcp_rcv_synsent_state_process`).
        resends_syn_after_bad_ack,
        /// A SYN+ACK of a simultaneous open repeats the SYN's options (`tcp_send_synack`).
        simultaneous_open_repeats_options,
        /// Until it is established, a passive end answers as a listener does (`tcp_check_req`).
        answers_as_listener,
        /// A SYN's window is no first maximum of a passive end (`tcp_create_openreq_child`).
        ignores_syn_window_maximum,
        /// A passive end's path MTU search starts at the negotiated MSS (`tcp_mtup_init`).
        server_starts_at_negotiated_mss,
    }

    /// Acknowledgments sent: when, and their options.
    AckQuirks {
        /// Answers ACKs of data never sent at most twice a second (`tcp_send_challenge_ack`).
        rate_limits_challenge_acks,
        /// Delays ACKs at an end that answers data (`inet_csk_enter_pingpong_mode`).
        pingpong_mode,
        /// SACK blocks reduce the payload by their actual length (`tcp_current_mss`).
        fits_sack_blocks,
        /// Merges data with four remembered SACK blocks only (`tcp_sack_new_ofo_skb`).
        remembers_four_sack_blocks,
        /// Reports an out-of-order FIN in SACK blocks, like data (`tcp_data_queue_ofo`).
        sacks_fin,
        /// The RST of an aborting application carries SACK blocks (`tcp_send_active_reset`).
        sends_sack_in_reset,
    }

    /// Segments received: which are accepted, and what they change.
    AcceptanceQuirks {
        /// Accepts segments without the negotiated timestamps (`tcp_validate_incoming`).
        accepts_missing_timestamps,
        /// Segments beyond the window are accepted or refused as a whole (`tcp_sequence`).
        accepts_beyond_window,
        /// Does not answer old ACKs that fail PAWS (`tcp_disordered_ack_check`).
        ignores_old_acks_failing_paws,
        /// Old segments do not shrink the send window (`tcp_may_update_window`).
        ignores_window_shrink,
        /// A right edge one unit below SND.NXT is rounding (`tcp_acceptable_seq`).
        tolerates_window_rounding,
        /// Ignores CWR on a segment with an old acknowledgment (`tcp_ack`).
        ignores_cwr_of_old_acks,
    }

    /// Segments sent: their size and time.
    SendingQuirks {
        /// Sends bursts of segments, defers small ones (`tcp_tso_should_defer`, `tcp_fragment`).
        sends_in_bursts,
        /// Checks for an application limit at writes (`tcp_rate_check_app_limited`).
        checks_app_limit_at_writes,
        /// After a timeout, a FIN waits for the congestion window (as observed with Linux 6.18).
        fin_waits_for_window,
        /// Windows count whole segments (`tcp_packets_in_flight`, `tcp_minshall_update`).
        counts_short_segments,
        /// Retransmits only what the window admits (`__tcp_retransmit_skb`).
        cuts_retransmissions_at_window,
        /// Short retransmissions take in what follows (`tcp_retrans_try_collapse`).
        collapses_retransmissions,
        /// Pacing begins with the tenth segment (`tcp_update_skb_after_send`).
        paces_tenth_segment,
    }

    /// Timers, and the probes that they send.
    TimerQuirks {
        /// Recovery timers share one purpose, and expire at ticks (`calc_wheel_index`).
        ticks,
        /// Window probes are empty and have an old sequence number (`tcp_xmit_probe_skb`).
        sends_empty_probes,
        /// Probes a window closed over data with a segment (`tcp_retransmit_timer`).
        probes_with_segment,
        /// A segment that confirms a closed window restarts the timer (`tcp_ack_probe`).
        restarts_probe_timer,
        /// Keep-alive checks the idle time only at expiries (`tcp_keepalive_timer`).
        kernel_keep_alive_timer,
    }

    /// Loss detection and recovery.
    RecoveryQuirks {
        /// RACK times the segment highest in sequence (`tcp_rack_advance`).
        rack_times_highest_sequence,
        /// A SACKed retransmission counts, whatever the echo (`tcp_rack_advance`).
        ignores_echo_of_sacked,
        /// D-SACKs raise the reordering degree (`tcp_sacktag_one`).
        learns_reordering_from_dsack,
        /// Undoes once no retransmission is in flight (`tcp_try_undo_partial`).
        undoes_without_retransmissions_out,
        /// D-SACKs widen RACK's window after reordering only (`tcp_dsack_seen`).
        dsack_widens_only_after_reordering,
        /// Tail loss probes are no retransmissions (`tcp_send_loss_probe`).
        probes_are_no_retransmissions,
        /// Any original data shows a spurious timeout (`tcp_process_loss`).
        any_original_shows_spurious_timeout,
        /// Retransmissions that D-SACKs report count as delivered (`tcp_dsack_seen`).
        counts_duplicates_as_delivered,
        /// Without SACK, duplicate ACKs count as SACKs (`tcp_add_reno_sack`).
        counts_duplicates_as_sacks,
    }

    /// Congestion window: reductions and growth.
    WindowQuirks {
        /// A loss reduces the window, whatever is in flight (`tcp_reno_ssthresh`).
        reduces_from_window,
        /// An ECN mark reduces the window proportionally (`tcp_enter_cwr`).
        reduces_gradually_for_marks,
        /// A timeout in recovery keeps the threshold (`tcp_enter_loss`).
        keeps_threshold_in_recovery,
        /// The ACK that ends recovery grows the window (`tcp_cong_control`).
        grows_on_recovery_exit,
        /// SACKed data grows the window of a reordered path (`tcp_may_raise_cwnd`).
        grows_while_reordered,
        /// CUBIC computes with segments and ticks (`bictcp_update`).
        integer_cubic,
    }
}

/// Linux behaviours, by subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinuxQuirks {
    /// Handshake: SYNs, their options, and their timer.
    pub handshake: HandshakeQuirks,
    /// Acknowledgments sent: when, and their options.
    pub acks: AckQuirks,
    /// Segments received: which are accepted, and what they change.
    pub acceptance: AcceptanceQuirks,
    /// Segments sent: their size and time.
    pub sending: SendingQuirks,
    /// Timers, and the probes that they send.
    pub timers: TimerQuirks,
    /// Loss detection and recovery.
    pub recovery: RecoveryQuirks,
    /// Congestion window: reductions and growth.
    pub window: WindowQuirks,
}

impl LinuxQuirks {
    /// The behaviour of the RFCs.
    pub const NONE: Self = Self {
        handshake: HandshakeQuirks::NONE,
        acks: AckQuirks::NONE,
        acceptance: AcceptanceQuirks::NONE,
        sending: SendingQuirks::NONE,
        timers: TimerQuirks::NONE,
        recovery: RecoveryQuirks::NONE,
        window: WindowQuirks::NONE,
    };
    /// The behaviour of Linux.
    pub const ALL: Self = Self {
        handshake: HandshakeQuirks::ALL,
        acks: AckQuirks::ALL,
        acceptance: AcceptanceQuirks::ALL,
        sending: SendingQuirks::ALL,
        timers: TimerQuirks::ALL,
        recovery: RecoveryQuirks::ALL,
        window: WindowQuirks::ALL,
    };
}

impl Default for LinuxQuirks {
    fn default() -> Self {
        Self::NONE
    }
}
