//! Several far ends in sequence.

use bentpipe_link::{EndCtx, FarEnd, Tally};
use bentpipe_types::{PacketRef, PacketStore, Time};

/// Far ends in sequence: the output of one arrives at the next.
#[derive(Debug)]
pub struct Stages {
    stages: Vec<Box<dyn FarEnd>>,
    // Reused for every packet.
    arriving: Vec<PacketRef>,
    leaving: Vec<PacketRef>,
}

impl Stages {
    /// Creates the sequence; the first one is at the link's end.
    #[must_use]
    pub fn new(stages: Vec<Box<dyn FarEnd>>) -> Self {
        Self {
            stages,
            arriving: Vec::new(),
            leaving: Vec::new(),
        }
    }

    /// Passes arriving packets from this stage to the last one.
    fn hand_on(
        &mut self,
        now: Time,
        from: usize,
        packets: &mut PacketStore,
        out: &mut Vec<PacketRef>,
    ) {
        for stage in &mut self.stages[from..] {
            for packet in self.arriving.drain(..) {
                stage.on_arrival(packet, &mut EndCtx::new(now, packets, &mut self.leaving));
            }
            std::mem::swap(&mut self.arriving, &mut self.leaving);
        }
        out.append(&mut self.arriving);
    }
}

impl FarEnd for Stages {
    fn on_arrival(&mut self, packet: PacketRef, cx: &mut EndCtx<'_>) {
        let (now, EndCtx { packets, out, .. }) = (cx.now, cx);
        self.arriving.push(packet);
        self.hand_on(now, 0, packets, out);
    }

    fn on_deadline(&mut self, cx: &mut EndCtx<'_>) {
        let (now, EndCtx { packets, out, .. }) = (cx.now, cx);
        // The last stage first: its output precedes what now leaves the stages before it.
        for at in (0..self.stages.len()).rev() {
            if self.stages[at]
                .next_deadline()
                .is_some_and(|due| due <= now)
            {
                self.stages[at].on_deadline(&mut EndCtx::new(now, packets, &mut self.arriving));
                self.hand_on(now, at + 1, packets, out);
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.stages
            .iter()
            .filter_map(|stage| stage.next_deadline())
            .min()
    }

    fn held(&self) -> usize {
        self.stages.iter().map(|stage| stage.held()).sum()
    }

    fn tally(&self, each: &mut Tally<'_>) {
        for stage in &self.stages {
            stage.tally(each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::{Reconstructor, ReconstructorSettings};
    use crate::testing::{Bench, ack};
    use crate::{Gate, TunnelExit};

    #[test]
    fn output_of_a_stage_is_the_input_of_the_next() {
        let mut bench = Bench::default();
        let exit = TunnelExit::new(Gate::new(None, Vec::new()));
        let reconstructor = Reconstructor::new(ReconstructorSettings::default());
        let mut stages = Stages::new(vec![Box::new(exit), Box::new(reconstructor)]);
        let mut out = Vec::new();
        for i in 0..4_u32 {
            let at = Time::from_nanos(u64::from(i) * 1_000_000);
            let packet = ack(10_000 * i * i).insert(&mut bench.packets);
            stages.on_arrival(packet, &mut EndCtx::new(at, &mut bench.packets, &mut out));
        }
        while let Some(at) = stages.next_deadline() {
            stages.on_deadline(&mut EndCtx::new(at, &mut bench.packets, &mut out));
        }
        let numbers = bench.numbers(&out);
        assert!(numbers.is_sorted() && numbers.len() > 10, "{numbers:?}");
        assert_eq!((numbers.first(), numbers.last()), (Some(&0), Some(&90_000)));
        assert_eq!(stages.held(), 0);
    }
}
