//! `bentpipe-live`: real-time operation on a Linux machine.

#[cfg(target_os = "linux")]
mod command;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    command::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("bentpipe-live: this needs Linux");
    std::process::exit(2);
}
