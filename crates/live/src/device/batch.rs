//! Packets that one read of a device returns.

/// Upper bound for one read: the longest packet, and the kernel's header before it.
const MAX_READ: usize = (1 << 16) + 64;

/// The result of one read of a device: one packet, or many that were read together. The buffer is
/// reused, so that reading does not allocate.
#[derive(Debug)]
pub struct Batch {
    /// The bytes that were read.
    raw: Vec<u8>,
    /// Length of the packet in `raw`, if it is a single one.
    single: Option<usize>,
    /// Packets that the bytes read were split into, and the length of each.
    segments: Vec<Vec<u8>>,
    lengths: Vec<usize>,
    /// Longest packet that fits.
    longest: usize,
    segment_count: usize,
    /// Number of reads that could not be split into packets.
    unsplit: u64,
}

/// Buffers for a device that splits its reads into packets.
#[derive(Debug)]
pub(crate) struct BatchBuffers<'a> {
    /// Buffer for the bytes read.
    pub(crate) raw: &'a mut [u8],
    /// Buffers for the packets.
    pub(crate) segments: &'a mut [Vec<u8>],
    /// Lengths of the packets.
    pub(crate) lengths: &'a mut [usize],
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            raw: vec![0; MAX_READ],
            single: None,
            segments: Vec::new(),
            lengths: Vec::new(),
            longest: 0,
            segment_count: 0,
            unsplit: 0,
        }
    }
}

impl Batch {
    /// Makes this a batch of one packet, truncated to the longest possible packet.
    pub fn put(&mut self, packet: &[u8]) {
        let length = packet.len().min(self.raw.len());
        self.raw[..length].copy_from_slice(&packet[..length]);
        self.single = Some(length);
        self.segment_count = 0;
    }

    /// Provides buffers for `packets` packets of at most `bytes` bytes each.
    pub(crate) fn buffers(&mut self, packets: usize, bytes: usize) -> BatchBuffers<'_> {
        self.single = None;
        self.segment_count = 0;
        if self.segments.len() < packets || self.longest < bytes {
            self.grow(packets, bytes);
        }
        BatchBuffers {
            raw: &mut self.raw,
            segments: &mut self.segments[..packets],
            lengths: &mut self.lengths[..packets],
        }
    }

    #[cold]
    fn grow(&mut self, packets: usize, bytes: usize) {
        let packets = packets.max(self.segments.len());
        self.longest = self.longest.max(bytes);
        self.lengths.resize(packets, 0);
        self.segments.resize_with(packets, Vec::new);
        for segment in &mut self.segments {
            segment.resize(self.longest, 0);
        }
        // An unsplit packet may be longer than the device's MTU was when it was opened.
        if let Some(first) = self.segments.first_mut() {
            first.resize(MAX_READ, 0);
        }
    }

    /// Sets the number of packets that were written into the buffers.
    pub(crate) fn set_packets(&mut self, packets: usize) {
        self.segment_count = packets.min(self.segments.len());
    }

    /// Records that the bytes read could not be split.
    pub(crate) fn mark_unsplit(&mut self) {
        self.unsplit += 1;
    }

    /// Returns and resets the number of reads that could not be split.
    pub(crate) fn take_unsplit(&mut self) -> u64 {
        std::mem::take(&mut self.unsplit)
    }

    /// Calls `keep` with each packet, which may modify it; removes packets for which it returns
    /// false.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut [u8]) -> bool) {
        if let Some(length) = self.single
            && !keep(&mut self.raw[..length])
        {
            self.single = None;
        }
        let segments = self.segments.iter_mut().zip(&mut self.lengths);
        for (segment, length) in segments.take(self.segment_count) {
            let length_used = (*length).min(segment.len());
            if !keep(&mut segment[..length_used]) {
                *length = 0;
            }
        }
    }

    /// Returns the packets in order.
    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let single = self.single.map(|length| &self.raw[..length]);
        let segments = self
            .segments
            .iter()
            .zip(&self.lengths)
            .take(self.segment_count);
        let segments = segments.filter(|(_, length)| **length > 0);
        single.into_iter().chain(segments.map(|(segment, length)| {
            let length = (*length).min(segment.len());
            &segment[..length]
        }))
    }
}
