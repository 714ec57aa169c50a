//! The table of the kinds of queue. The code that reads, describes, resolves, reports, creates or
//! lists queues is generated from this table.

/// Passes the table to the macro `$then`. Each entry is a kind: its name in a scenario file, its
/// description, which is the reference, and its keys. The keys are its own ones, and the names of
/// shared ones; `kind` and `limit` apply to all kinds. Its settings have the type of the same name.
macro_rules! queue_kinds {
    ($then:ident) => {
        $then! {
            shared {
                /// CoDel, FQ-CoDel and PIE: target for the queuing delay. "10 us" to "10 s".
                /// Default: "5 ms"; with "pie" "15 ms".
                target: Length,
                /// CoDel and FQ-CoDel: time for which the delay must exceed `target` before a
                /// packet is dropped. Set it to about the longest round-trip time of the flows:
                /// over a satellite, more than the default, which is Linux's. "1 ms" to "100 s".
                /// Default: "100 ms".
                interval: Length,
                /// RED, CoDel, FQ-CoDel, PIE: mark packets of ECN-capable flows instead of dropping
                /// them, as long as the queue is not full (PIE: as long as the drop probability is
                /// at most 0.1). Default: false; with "fq-codel" true, as in Linux.
                ecn: bool,
                /// Fair queueing and FQ-CoDel: bytes that a flow sends per round. At least "64 B".
                /// Default: "1500 B".
                quantum: Size,
                /// Fair queueing and FQ-CoDel: number of separate queues, 1 to 65536. Fair
                /// queueing: if more flows than this are queued at once, some share a queue.
                /// FQ-CoDel: a hash assigns flows to queues, so that fewer flows may share one,
                /// too. Default: 1024.
                flows: u32,
            }

            /// First in, first out; packets that arrive at a full queue are dropped.
            DropTail = "drop-tail", shares [] {}

            /// Random early detection: first in, first out; the longer the average queue, the more
            /// arriving packets are dropped at random before it is full (Floyd and Jacobson 1993).
            Red = "red", shares [ecn] {
                /// RED's min_th: while the average queue is shorter, nothing is dropped. In packets
                /// or in bytes; in bytes, long packets are dropped more often. Default: a third of
                /// `maximum_threshold`.
                minimum_threshold: QueueLimit,
                /// RED's max_th: from this average on, every packet is dropped. Default: half of
                /// `limit`.
                maximum_threshold: QueueLimit,
                /// RED's max_p: share of packets that are dropped just below `maximum_threshold`.
                /// Default: 0.1.
                maximum_probability: Probability,
                /// RED's w_q: weight of the current queue length in the average. Default: 0.002.
                weight: Probability,
                /// RED: between `maximum_threshold` and twice that, increase the share from
                /// `maximum_probability` to 1. Default: true.
                gentle: bool,
                /// RED: typical packet length, which determines how fast the average falls while
                /// the link is idle. Default: "1000 B".
                mean_packet: Size,
            }

            /// First in, first out; above a threshold, a fixed share of packets is dropped at
            /// random (Hashem 1989).
            EarlyRandomDrop = "early-random-drop", shares [] {
                /// Early random drop: threshold of the queue length above which arriving packets
                /// are dropped at random. Default: half of `limit`.
                drop_level: QueueLimit,
                /// Early random drop: share of packets that are dropped then. Default: 0.02.
                drop_probability: Probability,
            }

            /// Fair queueing: a queue for each flow, served by deficit round robin (Shreedhar and
            /// Varghese 1996). When they are full in total, the longest queue loses its first
            /// packet.
            Fair = "fair", shares [quantum flows] {}

            /// CoDel (RFC 8289, as in Linux): first in, first out. After the queuing delay has
            /// exceeded `target` for an `interval`, a packet is dropped as it leaves the queue, and
            /// further ones at shorter and shorter intervals while the delay stays too long.
            Codel = "codel", shares [target interval ecn] {}

            /// FQ-CoDel (RFC 8290, as in Linux): a queue for each flow with CoDel in each; new
            /// flows are served first. When they are full in total, the longest queue loses half of
            /// its packets, from its front.
            FqCodel = "fq-codel", shares [target interval ecn quantum flows] {}

            /// PIE (RFC 8033): first in, first out. Arriving packets are dropped at random, with a
            /// probability that grows with the queuing delay and with its increase.
            Pie = "pie", shares [target ecn] {
                /// PIE's T_UPDATE: interval at which the drop probability is computed. "1 ms" to
                /// "10 s". Default: "15 ms".
                update_interval: Length,
                /// PIE's MAX_BURST: time for which nothing is dropped at random when a queue builds
                /// up after a time without one. Default: "150 ms".
                burst_allowance: Length,
            }

            /// Strict priority: a queue for each of `classes`. The first class in the list that has
            /// a packet sends next. When they are full in total, the last class that has packets
            /// loses its first one.
            Priority = "priority", shares [] {
                /// Priority: the classes of `[classes.NAME]`, highest priority first. "others"
                /// stands for all packets of no other class in the list, and comes last unless it
                /// is listed. A packet belongs to the first class of this list that it matches.
                /// Required with "priority".
                classes: Vec<String>,
            }

            /// A queue for each class of `weights`. Backlogged classes share the link in proportion
            /// to their weights, by start-time fair queueing (Goyal, Vin and Cheng 1997). When they
            /// are full in total, the class with the most bytes relative to its weight loses its
            /// first packet.
            Weighted = "weighted", shares [] {
                /// Weighted: the weight of each class relative to the others, such as { calls = 4,
                /// web = 2, others = 1 }; above 0. "others" stands for all packets of no other
                /// class in the list, with weight 1 unless it is listed. A packet belongs to the
                /// first class that it matches. Required with "weighted".
                weights: Named<f64>,
            }
        }
    };
}
pub(crate) use queue_kinds;
