//! The IP version of all packets.

use bentpipe_types::words;

words! {
    /// A version of IP.
    #[derive(Default)]
    IpName {
        /// IPv4: a header of 20 bytes.
        #[default]
        V4 = "v4",
        /// IPv6: a header of 40 bytes; `mss` is 20 bytes less by default.
        V6 = "v6",
    }
}
