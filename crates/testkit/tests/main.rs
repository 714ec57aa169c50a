//! Scripts and generated networks: one binary, a module per subject.

mod command;
mod hostile;
mod hostile_networks;
mod scripts;
