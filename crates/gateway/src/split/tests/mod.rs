//! What a split gateway does, case by case. Hostile networks are in `testkit`.

mod bodies;
mod bytes;
mod moves;
mod multiplex;
mod net;
mod opening;
mod questions;
mod rest;
mod streams;
mod vigil;

use bentpipe_tcp::Ranges;

type Net = net::Net<Ranges>;
