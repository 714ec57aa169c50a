use proptest::prelude::*;

use super::*;
use crate::Config;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Send(u64),
    Acknowledge(u64),
    Duplicate,
    Timeout,
    Retransmit,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        (1_u64..20_000).prop_map(Operation::Send),
        (1_u64..20_000).prop_map(Operation::Acknowledge),
        Just(Operation::Duplicate),
        Just(Operation::Duplicate),
        Just(Operation::Timeout),
        Just(Operation::Retransmit),
    ]
}

fn acknowledgment(acknowledged: u64, duplicate: bool) -> Acknowledgment {
    Acknowledgment {
        acknowledged,
        duplicate,
        now: Time::ZERO,
        echo: None,
        smoothed_rtt: None,
        can_send_new: true,
        one_more: false,
    }
}

proptest! {
    /// For any sequence of operations, the bytes in flight stay in range, recovery begins only with
    /// the third duplicate, and acknowledged data is never retransmitted.
    #[test]
    fn any_sequence_of_operations(
        kind in prop_oneof![Just(RecoveryKind::Reno), Just(RecoveryKind::NewReno)],
        limited_transmit in any::<bool>(),
        operations in proptest::collection::vec(operation(), 1..200),
    ) {
        let mut board = Scoreboard::new();
        let mut recovery = Recovery::new(&Config {
            recovery: kind,
            limited_transmit,
            ..Config::default()
        }, false);
        let mut send = SendSequence { unacknowledged: 1, next: 1, highest: 1, segment: 1000 };
        let mut duplicates = 0;
        for operation in operations {
            match operation {
                Operation::Send(bytes) => {
                    send.next += bytes;
                    send.highest = send.highest.max(send.next);
                }
                Operation::Acknowledge(bytes) => {
                    let acknowledged = bytes.min(send.outstanding_ever());
                    if acknowledged == 0 {
                        continue;
                    }
                    send.unacknowledged += acknowledged;
                    send.next = send.next.max(send.unacknowledged);
                    let recovering = recovery.is_recovering();
                    let ack = acknowledgment(acknowledged, false);
                    let reaction = recovery.on_ack(&ack, &send, &mut board);
                    prop_assert_eq!(reaction == Reaction::Grow, !recovering);
                    let exits = matches!(reaction, Reaction::Exit { .. });
                    prop_assert_eq!(exits, recovering && !recovery.is_recovering());
                    if kind == RecoveryKind::Reno {
                        prop_assert!(!recovery.is_recovering());
                    }
                    duplicates = 0;
                }
                Operation::Duplicate => {
                    let ack = acknowledgment(0, true);
                    duplicates += 1;
                    match recovery.on_ack(&ack, &send, &mut board) {
                        Reaction::Enter { flight_size } => {
                            prop_assert!(duplicates >= 3 && recovery.is_recovering());
                            prop_assert!(flight_size <= send.outstanding_ever());
                            prop_assert!(recovery.next_retransmit(&send, &mut board).is_some());
                        }
                        reaction => prop_assert_eq!(reaction, Reaction::Hold),
                    }
                }
                Operation::Timeout => {
                    send.next = send.unacknowledged;
                    let timeout = TimedOut { reduces: true, smoothed_rtt: None, now: Time::ZERO };
                    let _ = recovery.on_timeout(&timeout, &send, &mut board);
                    prop_assert!(!recovery.is_recovering());
                    prop_assert_eq!(recovery.in_flight(&send, &board), 0);
                    duplicates = 0;
                }
                Operation::Retransmit => {
                    if let Some(again) = recovery.next_retransmit(&send, &mut board) {
                        prop_assert_eq!(again.position, send.unacknowledged);
                        recovery.on_retransmitted(again.position, Time::ZERO, &mut board);
                        prop_assert_eq!(recovery.next_retransmit(&send, &mut board), None);
                    }
                }
            }
            // Deflation may count acknowledged data for which no duplicate arrived, but no more
            // than was ever sent.
            prop_assert!(recovery.in_flight(&send, &board) <= 2 * send.highest);
        }
    }
}
