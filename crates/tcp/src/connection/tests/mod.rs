mod acknowledging;
mod hostile;
mod options;
mod sending;
mod states;
mod transfer;
