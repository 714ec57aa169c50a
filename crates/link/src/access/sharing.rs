//! Rules for sharing the rest of a frame.

use super::capacity::Capacity;

/// Shares in proportion to demand if it exceeds what is left: OpenSAND's fair share of rate-based
/// requests (`DamaCtrlRcs2Legacy::computeDamaRbdcPerCarrier`), in capacity instead of slots.
pub(super) fn in_proportion(wants: &[Capacity], left: Capacity) -> Vec<Capacity> {
    let all = wants.iter().fold(Capacity::ZERO, |sum, want| sum + *want);
    if all <= left {
        return wants.to_vec();
    }
    let share = |want: &Capacity| left.in_proportion(*want, all);
    wants.iter().map(share).collect()
}

/// Shares equally, to nobody more than its demand; what one does not need goes to the others
/// (max-min fairness), as SNS-3 shares symbols among volumes (`SatFrameAllocator::ShareSymbols`).
/// Everything left is granted if there is demand for it.
pub(super) fn evenly(wants: &[Capacity], left: Capacity) -> Vec<Capacity> {
    let mut given = wants.to_vec();
    let mut left = left;
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by_key(|index| (wants[*index], *index));
    for (served, index) in order.into_iter().enumerate() {
        let share = left.share_of(wants.len() - served);
        given[index] = share.min(wants[index]);
        left = left - given[index];
    }
    given
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(bytes: u64) -> Capacity {
        Capacity::of_byte(1.0) * bytes
    }

    fn sum(all: &[Capacity]) -> Capacity {
        all.iter().fold(Capacity::ZERO, |sum, one| sum + *one)
    }

    #[test]
    fn small_demands_are_met_and_the_rest_is_shared() {
        let wants = [of(100), of(900), of(10), of(900)];
        assert_eq!(evenly(&wants, of(510)), [of(100), of(200), of(10), of(200)]);
        assert_eq!(
            in_proportion(&wants, of(191)),
            [of(10), of(90), of(1), of(90)]
        );
        assert_eq!(evenly(&wants, of(5000)), wants);
        assert_eq!(in_proportion(&wants, of(5000)), wants);
    }

    proptest! {
        #[test]
        fn shares_are_at_most_the_demands_and_sum_to_at_most_the_capacity(
            wants in prop::collection::vec(0_u64..1 << 40, 0..20),
            left in 0_u64..1 << 42,
        ) {
            let wants: Vec<_> = wants.into_iter().map(of).collect();
            let left = of(left);
            for share in [in_proportion, evenly] {
                let given = share(&wants, left);
                prop_assert!(given.iter().zip(&wants).all(|(given, want)| given <= want));
                prop_assert!(sum(&given) <= left);
            }
            let given = evenly(&wants, left);
            prop_assert_eq!(sum(&given), left.min(sum(&wants)), "no remainder is lost");
            let most = given.iter().max().copied().unwrap_or_default();
            for (given, want) in given.iter().zip(&wants) {
                // Up to the remainder of a division.
                prop_assert!(given == want || *given + of(1) >= most);
            }
        }
    }
}
