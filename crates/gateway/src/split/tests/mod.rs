//! Tests of the split gateway, case by case. Tests with hostile networks are in `testkit`.

mod byte_streams;
mod common_cases;
mod connection_setup;
mod host_mobility;
mod keep_alive;
mod multiplex;
mod peer_liveness;
mod rate_limits;
mod streams;
mod suspension;
mod test_network;

use bentpipe_tcp::Ranges;

type Net = test_network::Net<Ranges>;
