use proptest::prelude::*;

use super::*;

impl Entry for (Time, u32) {
    fn at(self) -> Time {
        self.0
    }
}

/// An operation on the queue. Times are relative to the last entry that was removed.
#[derive(Clone, Copy, Debug)]
enum Step {
    Push(u64),
    Pop,
    Postpone(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Times from the current slice to far beyond the last one.
    let later = prop_oneof![0_u64..4, 0_u64..1 << SLICE, 0_u64..1 << 30, 0_u64..1 << 34,];
    let step = prop_oneof![
        4 => later.clone().prop_map(Step::Push),
        3 => Just(Step::Pop),
        2 => later.prop_map(Step::Postpone),
    ];
    prop::collection::vec(step, 0..4_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Entries are removed in the order of a sorted list, whatever their number.
    #[test]
    fn entries_are_removed_in_order(
        first in prop::collection::vec(0_u64..1 << 34, 0..2 * MANY),
        steps in steps(),
    ) {
        let mut agenda = Agenda::default();
        let mut witness = std::collections::BTreeSet::new();
        let (mut now, mut number) = (0, 0);
        let mut new = |at: u64| {
            number += 1;
            (Time::from_nanos(at), number)
        };
        for at in first {
            let entry = new(at);
            agenda.push(entry);
            witness.insert(entry);
        }
        let pops = witness.len();
        for step in steps.into_iter().chain((0..pops).map(|_| Step::Pop)) {
            prop_assert_eq!(agenda.first(), witness.first().copied());
            match step {
                Step::Push(later) => {
                    let entry = new(now + later);
                    agenda.push(entry);
                    witness.insert(entry);
                }
                Step::Pop => {
                    let popped = agenda.pop();
                    prop_assert_eq!(popped, witness.pop_first());
                    now = popped.map_or(now, |(at, _)| at.as_nanos());
                }
                Step::Postpone(later) => {
                    if let Some((at, _)) = witness.pop_first() {
                        now = at.as_nanos();
                        let entry = new(now + later);
                        agenda.postpone_first(|_| entry);
                        witness.insert(entry);
                    }
                }
            }
        }
        prop_assert_eq!(agenda.len(), witness.len());
    }

    #[test]
    fn retained_and_changed_entries_stay_in_order(ats in prop::collection::vec(0_u64..1 << 34, 0..3 * MANY)) {
        let mut agenda = Agenda::default();
        for (at, number) in ats.iter().zip(0..) {
            agenda.push((Time::from_nanos(*at), number));
        }
        agenda.retain(|(_, number)| number % 3 == 0);
        agenda.change(|(at, number)| (Time::from_nanos(at.as_nanos() / 2), number));
        let mut left: Vec<_> = ats.iter().map(|at| at / 2).step_by(3).collect();
        left.sort_unstable();
        prop_assert_eq!(agenda.len(), left.len());
        prop_assert_eq!(agenda.is_empty(), left.is_empty());
        let came: Vec<_> = std::iter::from_fn(|| Some(agenda.pop()?.0.as_nanos())).collect();
        prop_assert_eq!(came, left);
    }
}

#[test]
fn upcoming_entries_are_available_in_a_large_agenda() {
    let mut agenda = Agenda::default();
    for number in (0..MANY as u32).rev() {
        assert_eq!(agenda.upcoming(0), None, "few are not in order");
        agenda.push((Time::from_nanos(u64::from(number)), number));
    }
    for others in 0..MANY {
        assert_eq!(
            agenda.upcoming(others).map(|(_, number)| number),
            Some(others as u32)
        );
    }
    assert_eq!(agenda.upcoming(MANY), None);
}
