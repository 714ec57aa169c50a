//! Writes the manual page and the shell completions of `bentpipe-gateway` below a folder, as under
//! /usr/share.
//!
//! ```sh
//! cargo run --package bentpipe-live --example gateway_pages -- FOLDER
//! ```

use std::path::PathBuf;
use std::{env, fs, io};

#[cfg(target_os = "linux")]
fn main() -> io::Result<()> {
    let Some(folder) = env::args_os().nth(1).map(PathBuf::from) else {
        return Err(io::Error::other("expected a folder"));
    };
    let write = |place: &str, content: Vec<u8>| {
        let path = folder.join(place);
        fs::create_dir_all(path.parent().unwrap_or(&folder))?;
        fs::write(path, content)
    };
    write("man/man8/bentpipe-gateway.8", pages::manual()?)?;
    for (shell, place) in pages::COMPLETIONS {
        write(place, pages::completion(shell))?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() -> io::Result<()> {
    let _ = (env::args_os(), PathBuf::new(), fs::metadata("."));
    Err(io::Error::other("a gateway needs Linux"))
}

#[cfg(target_os = "linux")]
mod pages {
    use std::io;

    use bentpipe_live::gateway::command::command_line;
    use clap_complete::{Shell, generate};
    use clap_mangen::Man;

    pub(super) const COMPLETIONS: [(Shell, &str); 3] = [
        (Shell::Bash, "bash-completion/completions/bentpipe-gateway"),
        (
            Shell::Fish,
            "fish/vendor_completions.d/bentpipe-gateway.fish",
        ),
        (Shell::Zsh, "zsh/site-functions/_bentpipe-gateway"),
    ];

    /// Sections behind the options.
    const MORE: &str = r#".SH EXAMPLES
The machine is the gateway \fBhub\fR of a ready\-made scenario:
.PP
.RS
.nf
bentpipe\-gateway geo\-split \-\-gateway hub \e
    \-\-interface backbone=eth0 \-\-interface satellite=eth1
.fi
.RE
.PP
To see what would be set up, and what is in the way, put \fBcheck\fR before the scenario.
.SH SUBCOMMANDS
.TP
.B check
Report what would be set up, as with \fB\-\-check\fR.
.TP
.B run
Forward packets, as without a subcommand.
.TP
.BR status ", " connections ", " metrics
Show the counters of a gateway that runs with \fB\-\-socket\fR, its connections with both legs, or
its metrics in Prometheus' text format.
.TP
.B reload
Have it read the scenario file again, as with SIGHUP.
.TP
.B drain
Have it forward new connections, and end when the others have ended or after \fB\-\-within\fR.
.PP
Each has a \fB\-\-help\fR.
.SH SIGNALS
.TP
.BR SIGINT ", " SIGTERM
End the gateway: routes, rules and devices are removed, what is queued is sent for at most a second,
and the counters are printed. With \fB\-\-drain\fR, open connections may end first, and a second
signal ends it at once.
.TP
.B SIGHUP
Read the scenario file again. New connections have its settings, and none is reset. In a terminal,
end the gateway. Under
.BR nohup (1),
SIGHUP stays ignored.
.SH EXIT STATUS
.TP
.B 0
A signal or the end of \fB\-\-duration\fR ended the gateway. With \fB\-\-check\fR: it can run here.
.TP
.B 1
The request was valid and the work failed. With \fB\-\-check\fR: something is in the way.
.TP
.B 2
The request is wrong: an option, the scenario, or a key in it.
.SH FILES
.TP
.I /dev/net/tun
Packets pass through two TUN devices, which need the capability CAP_NET_ADMIN.
.SH SEE ALSO
.BR bentpipe (1),
.BR ip\-rule (8)
"#;

    pub(super) fn manual() -> io::Result<Vec<u8>> {
        // The examples have a section of their own.
        let manual = Man::new(command_line().after_help(None::<&str>)).section("8");
        let mut page = Vec::new();
        manual.render_title(&mut page)?;
        manual.render_name_section(&mut page)?;
        manual.render_synopsis_section(&mut page)?;
        manual.render_description_section(&mut page)?;
        manual.render_options_section(&mut page)?;
        page.extend_from_slice(MORE.as_bytes());
        Ok(page)
    }

    pub(super) fn completion(shell: Shell) -> Vec<u8> {
        let mut script = Vec::new();
        generate(shell, &mut command_line(), "bentpipe-gateway", &mut script);
        script
    }
}
