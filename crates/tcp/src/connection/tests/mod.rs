mod acknowledging;
mod hostile;
mod options;
mod selective;
mod sending;
mod states;
mod transfer;
