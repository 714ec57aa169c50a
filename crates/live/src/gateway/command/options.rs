//! The option table, and what the command line says about mistakes in it.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;

use bentpipe_scenario::quantity::Length;
use bentpipe_types::Span;
use clap::builder::{StyledStr, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::console::CommandError;
use crate::gateway::MAX_CONNECTIONS;
use crate::gateway::log_format::LogFormat;
use tracing::Level;

const EXAMPLES: &str = "\
Examples:
  bentpipe-gateway geo-split --gateway hub --interface backbone=eth0 --interface satellite=eth1
  bentpipe-gateway check geo-split --gateway hub --interface backbone=eth0 --interface satellite=eth1
  bentpipe-gateway connections --socket /run/bentpipe/gateway.sock";

/// The command line. Without a subcommand, packets are forwarded.
#[derive(Parser, Debug)]
#[command(
    name = "bentpipe-gateway",
    version,
    about = "Be a gateway of a scenario on a real Linux machine, between its own interfaces.",
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    args_override_self = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
struct Line {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Say what would be set up, and what is in the way; the same as --check.
    #[command(args_override_self = true)]
    Check(Options),
    /// Forward packets; the same as without a subcommand.
    #[command(args_override_self = true)]
    Run(Options),
    #[command(flatten)]
    Client(ClientAction),
}

/// A subcommand about a gateway that runs.
#[derive(Subcommand, Debug)]
pub(super) enum ClientAction {
    /// Show the counters of a gateway that runs.
    #[command(args_override_self = true)]
    Status(ClientOptions),
    /// List the connections of a gateway that runs, with both legs of each.
    #[command(args_override_self = true)]
    Connections(PageOptions),
    /// Print the metrics of a gateway that runs, in Prometheus' text format.
    #[command(args_override_self = true)]
    Metrics(ClientOptions),
    /// Have a gateway that runs read its scenario file again. New connections have its settings.
    #[command(args_override_self = true)]
    Reload(ClientOptions),
    /// Have a gateway that runs forward new connections, and end when the others have ended.
    #[command(args_override_self = true)]
    Drain(DrainOptions),
}

impl ClientAction {
    pub(super) fn options(&self) -> &ClientOptions {
        match self {
            Self::Status(options) | Self::Metrics(options) | Self::Reload(options) => options,
            Self::Connections(page) => &page.options,
            Self::Drain(drain) => &drain.options,
        }
    }
}

/// Control socket of the service that the Debian package installs.
const SOCKET: &str = "/run/bentpipe/gateway.sock";

/// Options of the subcommands about a gateway that runs.
#[derive(Args, Debug)]
pub(super) struct ClientOptions {
    /// The control socket of the gateway.
    #[arg(long, value_name = "PATH", default_value = SOCKET, allow_hyphen_values = true)]
    pub(super) socket: OsString,

    /// Print one JSON object and nothing else.
    #[arg(long)]
    pub(super) json: bool,
}

/// Options of `connections`.
#[derive(Args, Debug)]
pub(super) struct PageOptions {
    #[command(flatten)]
    pub(super) options: ClientOptions,

    /// Leave out so many connections.
    #[arg(
        long, value_name = "N", default_value_t = 0, allow_hyphen_values = true,
        value_parser = |text: &str| whole_number::<u64>(text, 0..=u64::MAX)
    )]
    pub(super) first: u64,

    /// List at most so many connections.
    #[arg(
        long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
        value_parser = |text: &str| whole_number::<u64>(text, 1..=MAX_CONNECTIONS as u64)
    )]
    pub(super) limit: u64,
}

/// Options of `drain`.
#[derive(Args, Debug)]
pub(super) struct DrainOptions {
    #[command(flatten)]
    pub(super) options: ClientOptions,

    /// Then end all the same, and reset the connections that are left.
    #[arg(
        long, value_name = "TIME", default_value = "30 s", value_parser = Utf8,
        allow_hyphen_values = true
    )]
    pub(super) within: String,
}

/// The gateway, its devices and its output.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// A scenario file, or the name of a ready-made scenario; - is standard input.
    #[arg(value_name = "FILE")]
    pub(super) file: Option<OsString>,

    /// The file's gateway that this machine is.
    #[arg(long, value_name = "NAME", value_parser = Utf8, allow_hyphen_values = true)]
    pub(super) gateway: Option<String>,

    /// Or the link that it is, with its delay and losses: a satellite for a laboratory.
    #[arg(long, value_name = "NAME", value_parser = Utf8, allow_hyphen_values = true)]
    pub(super) link: Option<String>,

    /// The interface behind which a link of the gateway is (or, of --link, a node). Twice or more.
    #[arg(long, value_name = "LINK=INTERFACE", value_parser = Utf8, allow_hyphen_values = true)]
    interface: Vec<String>,

    /// Send there at the file's rate, from the file's queue. Repeatable.
    #[arg(long, value_name = "LINK", value_parser = Utf8, allow_hyphen_values = true)]
    pub(super) shape: Vec<String>,

    /// With multiplex: this gateway's end of the persistent connections. An address of the network
    /// on its hosts' side that nobody has.
    #[arg(long, value_name = "IP", value_parser = Utf8, allow_hyphen_values = true)]
    pub(super) address: Option<String>,

    /// The other gateway's, likewise.
    #[arg(long, value_name = "IP", value_parser = Utf8, allow_hyphen_values = true)]
    pub(super) peer: Option<String>,

    /// End after so long, such as "60 s". [default: on a signal]
    #[arg(long, value_name = "TIME", value_parser = Utf8, allow_hyphen_values = true)]
    pub(super) duration: Option<String>,

    /// On SIGTERM or SIGINT, forward new connections, and end when the others have ended, or after
    /// this time. [default: end at once]
    #[arg(long, value_name = "TIME", value_parser = Utf8, allow_hyphen_values = true)]
    pub(super) drain: Option<String>,

    /// Open a control socket there, for the subcommands status, connections, metrics, reload and
    /// drain.
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    pub(super) socket: Option<OsString>,

    /// Serve metrics for Prometheus over HTTP at this loopback address, such as 127.0.0.1:9435.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = Utf8, allow_hyphen_values = true)]
    pub(super) metrics: Option<String>,

    /// Keep the counters in this file, so that metrics go on after a restart.
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub(super) statistics: Option<OsString>,

    /// Log with time and level, and with the connection: text, or json for an object in each line.
    #[arg(long, value_name = "FORMAT", value_parser = Utf8, allow_hyphen_values = true)]
    log: Option<String>,

    /// With --log: error, warn, info, or debug, which names every connection. [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = Utf8, allow_hyphen_values = true)]
    log_level: Option<String>,

    /// Say what would be set up, and what is in the way.
    #[arg(long)]
    pub(super) check: bool,

    /// Remove what a killed one has left, and do nothing else.
    #[arg(long)]
    pub(super) clean: bool,

    /// Instead of the file's seed.
    #[arg(
        long, value_name = "N", allow_hyphen_values = true,
        value_parser = |text: &str| whole_number::<u64>(text, 0..=u64::MAX)
    )]
    pub(super) seed: Option<u64>,

    /// Change a key, such as links.satellite.forward.rate=8Mbit/s. Repeatable.
    #[arg(long, value_name = "KEY=VALUE", value_parser = Utf8, allow_hyphen_values = true)]
    set: Vec<String>,

    /// Capture this link's packets in LINK.pcapng. Repeatable.
    #[arg(long, value_name = "LINK", value_parser = Utf8, allow_hyphen_values = true)]
    pub(super) pcap: Vec<String>,

    /// Capture at most so many bytes of each packet; 100 holds all headers.
    #[arg(
        long, value_name = "LENGTH", allow_hyphen_values = true,
        value_parser = |text: &str| whole_number::<u32>(text, 1..=65_535)
    )]
    pub(super) snap: Option<u32>,

    /// Print one JSON object and nothing else.
    #[arg(long)]
    pub(super) json: bool,
}

impl Options {
    /// Returns the settings of `--set`, each key once.
    pub(super) fn settings(&self) -> Result<Vec<(String, String)>, CommandError> {
        let mut settings: Vec<(String, String)> = Vec::new();
        for word in &self.set {
            let pair = word
                .split_once('=')
                .filter(|(key, _)| !key.trim().is_empty());
            let Some((key, value)) = pair.map(|(key, value)| (key.trim(), value.trim())) else {
                let message = format!("--set '{word}': expected KEY=VALUE");
                return Err(CommandError::Request(message));
            };
            match settings.iter_mut().find(|(known, _)| known == key) {
                Some((_, known)) => value.clone_into(known),
                None => settings.push((key.to_owned(), value.to_owned())),
            }
        }
        Ok(settings)
    }

    /// Returns the format of log lines, if it is not that of plain messages.
    pub(super) fn log_format(&self) -> Result<Option<LogFormat>, CommandError> {
        match self.log.as_deref() {
            None => Ok(None),
            Some("text") => Ok(Some(LogFormat::Text)),
            Some("json") => Ok(Some(LogFormat::Json)),
            Some(other) => {
                let message = format!("--log {other}: expected text or json");
                Err(CommandError::Request(message))
            }
        }
    }

    /// Returns the lowest level that is logged.
    pub(super) fn log_level(&self) -> Result<Level, CommandError> {
        match self.log_level.as_deref() {
            None | Some("info") => Ok(Level::INFO),
            Some("error") => Ok(Level::ERROR),
            Some("warn") => Ok(Level::WARN),
            Some("debug") => Ok(Level::DEBUG),
            Some(other) => {
                let message = format!("--log-level {other}: expected error, warn, info or debug");
                Err(CommandError::Request(message))
            }
        }
    }

    /// Returns the links or nodes of `--interface`, each with an interface.
    pub(super) fn interfaces(&self) -> Result<Vec<(String, String)>, CommandError> {
        let pair = |word: &String| match word.split_once('=') {
            Some((name, interface)) if !name.is_empty() && !interface.is_empty() => {
                Ok((name.to_owned(), interface.to_owned()))
            }
            _ => {
                let message =
                    format!("--interface {word}: expected LINK=INTERFACE, such as satellite=eth1");
                Err(CommandError::Request(message))
            }
        };
        self.interface.iter().map(pair).collect()
    }
}

/// A command line that has been read.
#[derive(Debug)]
pub(super) enum Parsed {
    /// Help or the version, to be printed.
    Help(String),
    Options(Box<Options>),
    Client(ClientAction),
}

/// Reads the words after the command's name.
pub(super) fn parse(words: Vec<OsString>) -> Result<Parsed, CommandError> {
    let after_dashes = words.iter().any(|word| word == "--");
    let words = std::iter::once(OsString::from("bentpipe-gateway")).chain(words);
    let matches = Line::command().try_get_matches_from(words);
    match matches.and_then(|matches| Line::from_arg_matches(&matches)) {
        Ok(Line {
            options,
            action: None,
        })
        | Ok(Line {
            action: Some(Action::Run(options)),
            ..
        }) => Ok(Parsed::Options(Box::new(options))),
        Ok(Line {
            action: Some(Action::Client(action)),
            ..
        }) => Ok(Parsed::Client(action)),
        Ok(Line {
            action: Some(Action::Check(options)),
            ..
        }) => Ok(Parsed::Options(Box::new(Options {
            check: true,
            ..options
        }))),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                Ok(Parsed::Help(error.to_string()))
            }
            _ => Err(CommandError::Request(mistake(&error, after_dashes))),
        },
    }
}

/// Describes a mistake in one line, as the other commands of `bentpipe` do.
fn mistake(error: &clap::Error, after_dashes: bool) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let word = context(ContextKind::InvalidArg);
    // "--seed <N>" is an option with its value.
    let option = word.split([' ', '=']).next().unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument if word.starts_with('-') && !after_dashes => {
            let near = context(ContextKind::SuggestedArg);
            match near.split(' ').next().unwrap_or_default() {
                "" => format!("No such option: {option}"),
                near => format!("No such option: {option} (Possible options: {near})"),
            }
        }
        ErrorKind::UnknownArgument => format!("Got unexpected extra argument(s) ({word})"),
        // A subcommand would have to be the first word.
        ErrorKind::ArgumentConflict if !context(ContextKind::InvalidSubcommand).is_empty() => {
            let word = context(ContextKind::InvalidSubcommand);
            format!("Got unexpected extra argument(s) ({word})")
        }
        ErrorKind::TooManyValues => format!("Option '{option}' does not take a value."),
        ErrorKind::InvalidValue => format!("Option '{option}' requires an argument."),
        ErrorKind::ValueValidation if !option.is_empty() => {
            let expected = std::error::Error::source(error).map(ToString::to_string);
            format!(
                "Invalid value for '{option}': {}",
                expected.unwrap_or_default()
            )
        }
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.strip_prefix("error: ").unwrap_or(line).to_owned()
        }
    }
}

fn whole_number<T: TryFrom<u64>>(text: &str, range: RangeInclusive<u64>) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    (number.and_then(|number| T::try_from(number).ok())).ok_or_else(|| {
        let (least, most) = range.into_inner();
        format!("expected a whole number from {least} to {most}")
    })
}

/// Parser of values that are text; names the option in the refusal of others.
#[derive(Clone, Debug)]
struct Utf8;

impl TypedValueParser for Utf8 {
    type Value = String;

    fn parse_ref(
        &self,
        _: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        if let Some(text) = value.to_str() {
            return Ok(text.to_owned());
        }
        let option = argument.and_then(Arg::get_long).unwrap_or_default();
        let shown: String = (value.as_encoded_bytes().utf8_chunks())
            .flat_map(|chunk| {
                let invalid = chunk.invalid().iter();
                let escaped = invalid.map(|byte| format!("\\udc{byte:02x}"));
                std::iter::once(chunk.valid().escape_default().to_string()).chain(escaped)
            })
            .collect();
        let message = format!("--{option} {shown}: not UTF-8 text");
        Err(clap::Error::raw(ErrorKind::InvalidUtf8, message))
    }
}

/// Returns the command line for generators of manual pages and completions.
#[must_use]
pub fn command_line() -> Command {
    Line::command()
}

/// A parameter of the command line, for completion in other programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParameterDescription {
    /// Name such as "interface".
    pub name: String,
    /// Option such as "--interface"; empty for the positional argument.
    pub option: String,
    /// Placeholder of the value; empty for a flag.
    pub value_name: String,
    /// Help text.
    pub help: String,
    /// Whether it may be repeated.
    pub is_repeatable: bool,
}

/// Returns the parameters in the order of the help.
#[must_use]
pub fn parameters() -> Vec<ParameterDescription> {
    (Line::command().get_arguments())
        .map(|argument| {
            let names = argument.get_value_names().unwrap_or_default();
            let takes_value = argument.get_action().takes_values();
            ParameterDescription {
                name: argument.get_id().to_string(),
                option: (argument.get_long()).map_or_else(String::new, |long| format!("--{long}")),
                value_name: (names.first().filter(|_| takes_value))
                    .map_or_else(String::new, ToString::to_string),
                help: argument
                    .get_help()
                    .map_or_else(String::new, StyledStr::to_string),
                is_repeatable: matches!(argument.get_action(), ArgAction::Append),
            }
        })
        .collect()
}

/// Parses the time of an option.
pub(super) fn duration(option: &str, text: &str) -> Result<Span, CommandError> {
    match text.parse::<Length>() {
        Ok(length) if length.0.as_nanos() > 0 => Ok(length.0),
        _ => {
            let message = format!("{option} {text}: expected a time such as \"60 s\"");
            Err(CommandError::Request(message))
        }
    }
}
