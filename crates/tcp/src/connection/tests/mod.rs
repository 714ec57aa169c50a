mod hostile;
mod transfer;
