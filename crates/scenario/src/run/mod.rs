//! Runs a scenario, and summarises the results.

pub(crate) mod capture;
pub(crate) mod engine;
pub(crate) mod error;
pub(crate) mod network;
pub(crate) mod options;
pub(crate) mod outside;
pub(crate) mod packet_log;
pub(crate) mod simulation;
pub(crate) mod summary;
