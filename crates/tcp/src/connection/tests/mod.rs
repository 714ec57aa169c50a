mod acknowledging;
mod fast_open;
mod hostile;
mod options;
mod selective;
mod sending;
mod states;
mod transfer;
