//! Losses at chosen packets, to replay a figure or a trace.

/// Loses the packets with these numbers.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Remaining numbers, the next one last.
    coming: Vec<u64>,
    packets: u64,
}

impl Listed {
    /// Creates the model. Packets are counted from 1 in the order in which they enter the link.
    #[must_use]
    pub fn new(packets: impl IntoIterator<Item = u64>) -> Self {
        let mut coming: Vec<u64> = packets.into_iter().collect();
        coming.sort_unstable_by(|a, b| b.cmp(a));
        coming.dedup();
        Self { coming, packets: 0 }
    }

    /// Whether the next packet is lost.
    pub fn loses(&mut self) -> bool {
        self.packets += 1;
        let lost = self.coming.last() == Some(&self.packets);
        if lost {
            self.coming.pop();
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_listed_packets_are_lost() {
        let mut model = Listed::new([5, 2, 2]);
        let lost: Vec<u64> = (1..=8).filter(|_| model.loses()).collect();
        assert_eq!(lost, [2, 5]);
    }
}
