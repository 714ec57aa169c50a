//! The scenario that the command line names: a file, a stream, or the name of a ready-made one.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bentpipe_scenario::{CustomControls, Scenario, Segment, key_lines, suggest};
use nix::errno::Errno;

use super::console::{CommandError, Console};

/// Ready-made scenarios and examples, by name.
const READY_MADE: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/ready_made.rs"));

/// Longest scenario in bytes; `bentpipe-scenario` has the same limit for files.
const LONGEST: u64 = 1 << 20;

/// Most characters of a wrong name that a message repeats.
const LONGEST_NAME: usize = 200;

/// A scenario that has been found and not been parsed.
#[derive(Debug)]
pub(super) enum ScenarioSource {
    /// A file.
    File(PathBuf),
    /// The text of a stream or a ready-made scenario, with its name in messages.
    Text { name: String, text: String },
}

impl ScenarioSource {
    /// Finds a scenario by the word on the command line; "-" is standard input.
    pub(super) fn find(word: &OsStr, console: &mut dyn Console) -> Result<Self, CommandError> {
        let refusal = |message: String| Err(CommandError::Request(message));
        if word.is_empty() {
            return refusal(
                "expected a scenario file or a ready-made scenario's name, got nothing".to_owned(),
            );
        }
        let path = normal(Path::new(word));
        let shown = word.to_string_lossy();
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => Some(metadata),
            Err(error) if is_absence(&error) => None,
            Err(error) => return refusal(format!("{}: {}", short(&shown), reason(&error))),
        };
        match &metadata {
            Some(found) if found.is_file() => return Ok(Self::File(path)),
            Some(found) if !found.is_dir() => return Self::read(&shown, &path, console),
            _ if word == "-" => return Self::read("-", Path::new("/dev/stdin"), console),
            _ => {}
        }
        if let Some((name, text)) = READY_MADE.iter().find(|(name, _)| *name == shown) {
            return Ok(Self::Text {
                name: (*name).to_owned(),
                text: (*text).to_owned(),
            });
        }
        if metadata.is_some() {
            return refusal(format!("{shown} is a folder; expected a scenario file"));
        }
        refusal(not_found(&shown))
    }

    /// Reads a stream. At most one byte more than the limit, because /dev/zero never ends.
    fn read(shown: &str, path: &Path, console: &mut dyn Console) -> Result<Self, CommandError> {
        let content = read_stream(path, console).map_err(|error| match error {
            StreamError::Interrupt(error) => CommandError::Console(error),
            StreamError::Read(_) if shown == "-" && !path.exists() => {
                CommandError::Request("-: standard input is closed".to_owned())
            }
            StreamError::Read(error) => {
                CommandError::Request(format!("{shown}: {}", reason(&error)))
            }
        })?;
        // Checked before decoding, because the cut may be within a character.
        if content.len() as u64 > LONGEST {
            let message = format!("{shown}: longer than 1 MiB: not a scenario file");
            return Err(CommandError::Request(message));
        }
        let text = String::from_utf8(content).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            CommandError::Request(format!("{shown}:{line}: not UTF-8 text"))
        })?;
        Ok(Self::Text {
            name: shown.to_owned(),
            text: text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned(),
        })
    }

    /// Returns the name in messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Text { name, .. } => name.clone(),
        }
    }

    /// Returns the text; an empty one if the file cannot be read as text.
    pub(super) fn text(&self) -> String {
        match self {
            Self::File(path) => fs::read_to_string(path).unwrap_or_default(),
            Self::Text { text, .. } => text.clone(),
        }
    }

    /// Parses the scenario with settings on top.
    pub(super) fn resolve(&self, settings: &[(String, String)]) -> Result<Scenario, CommandError> {
        let settings: Vec<(&str, &str)> = (settings.iter())
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let custom = CustomControls::default();
        let resolved = match self {
            Self::File(path) => Scenario::load_with(path, &settings, &custom),
            Self::Text { name, text } => Scenario::parse_with(text, name, &settings, &custom),
        };
        resolved.map_err(|error| {
            CommandError::Request(if is_sweep(&self.text()) {
                let name = self.name();
                format!(
                    "{name} is a sweep file, which `bentpipe sweep {name}` simulates; `bentpipe gateway` takes a scenario"
                )
            } else {
                error.to_string()
            })
        })
    }
}

enum StreamError {
    /// The console ends the command.
    Interrupt(io::Error),
    Read(io::Error),
}

fn read_stream(path: &Path, console: &mut dyn Console) -> Result<Vec<u8>, StreamError> {
    let mut stream = File::open(path).map_err(StreamError::Read)?;
    let (mut content, mut piece) = (Vec::new(), [0; 1 << 13]);
    while content.len() as u64 <= LONGEST {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => content.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                console.check_interrupt().map_err(StreamError::Interrupt)?;
            }
            Err(error) => return Err(StreamError::Read(error)),
        }
    }
    Ok(content)
}

/// Whether a text is a sweep file: it has keys of a sweep and none of a scenario.
fn is_sweep(text: &str) -> bool {
    let lines = key_lines(text).unwrap_or_default();
    let has = |names: &[&str]| {
        (lines.iter()).any(|(path, _)| match path.as_slice() {
            [Segment::Key(key)] => names.contains(&key.as_str()),
            _ => false,
        })
    };
    has(&["axes", "zip"]) && !has(&["links", "flows", "hosts"])
}

fn not_found(name: &str) -> String {
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    let known = || READY_MADE.iter().map(|(known, _)| *known);
    if let Some(near) = suggest(name, known()).or_else(|| suggest(stem, known())) {
        return format!("{name}: no such file; did you mean the ready-made scenario '{near}'?");
    }
    let shown = short(name);
    if name.ends_with(".toml") {
        return format!("{shown}: no such file");
    }
    let known: Vec<&str> = known().collect();
    let known = known.join(", ");
    format!("{shown}: no such file, and no ready-made scenario either ({known})")
}

/// Returns a path without doubled separators and "." components.
fn normal(path: &Path) -> PathBuf {
    let components: PathBuf = path.components().collect();
    match components.strip_prefix(".") {
        Ok(rest) if !rest.as_os_str().is_empty() => rest.to_owned(),
        _ => components,
    }
}

/// Whether a file is not there, rather than unreadable.
fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotADirectory | NotFound)
        || error.raw_os_error() == Some(Errno::ELOOP as i32)
}

/// Returns the reason of a system error as our messages word it.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}

/// Returns a name as a message repeats it, shortened if it is too long.
fn short(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}
