//! Prefix sums that can change.

/// An array of numbers with prefix sums (P. Fenwick, "A New Data Structure for Cumulative Frequency
/// Tables", Software: Practice and Experience 24(3), 1994): changes and sums take a number of steps
/// logarithmic in the length.
#[derive(Clone, Debug)]
pub(super) struct PrefixSums {
    nodes: Vec<u64>,
}

impl PrefixSums {
    /// Creates an array of zeros.
    pub(super) fn new(length: usize) -> Self {
        Self {
            nodes: vec![0; length],
        }
    }

    /// Changes an element from `before` to `after`.
    pub(super) fn change(&mut self, index: usize, before: u64, after: u64) {
        let mut node = index + 1;
        while let Some(sum) = self.nodes.get_mut(node - 1) {
            *sum = *sum - before + after;
            node += node & node.wrapping_neg();
        }
    }

    /// Returns the sum of all elements before this one.
    pub(super) fn before(&self, index: usize) -> u64 {
        let (mut node, mut sum) = (index, 0);
        while node > 0 {
            sum += self.nodes[node - 1];
            node &= node - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn prefix_sums_equal_those_of_a_loop(
            length in 1_usize..40,
            changes in prop::collection::vec((0_usize..40, 0_u64..1_000), 0..80),
        ) {
            let mut row = vec![0; length];
            let mut sums = PrefixSums::new(length);
            for (index, value) in changes {
                let index = index % length;
                sums.change(index, row[index], value);
                row[index] = value;
            }
            for index in 0..=length {
                prop_assert_eq!(sums.before(index), row[..index].iter().sum::<u64>());
            }
        }
    }
}
