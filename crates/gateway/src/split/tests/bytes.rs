//! The same with bytes: what a live gateway carries.

use super::bodies;
use super::net::{Net, two};

#[test]
fn every_byte_is_the_one_that_was_written() {
    let settings = two(|s| s.facing_tcp.send_buffer = 50_000);
    bodies::every_byte(Net::new(settings, &[1, 20, 1]));
}
