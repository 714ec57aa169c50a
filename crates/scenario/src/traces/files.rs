//! Opens the files that a scenario names, each trace once, and limits their total size in memory.

use std::cell::RefCell;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::changes::schema::TraceFormat;
use crate::limits::{MAX_TRACE_BYTES, MAX_TRACES_BYTES};
use crate::traces::formats::parse;
use crate::traces::parquet;
use crate::traces::trace::{Reading, Trace, TraceError};

/// Returns the contents of the file at a path, or one line that tells why it has none.
pub type FileReader<'a> = dyn Fn(&Path) -> Result<Vec<u8>, String> + 'a;

/// The files that a scenario refers to: traces, and lists of addresses.
pub(crate) struct Files<'a> {
    folder: PathBuf,
    reader: &'a FileReader<'a>,
    read: RefCell<Read>,
}

/// Bytes read and traces parsed so far.
#[derive(Debug, Default)]
struct Read {
    bytes: u64,
    known: Vec<CachedTrace>,
}

#[derive(Debug)]
struct CachedTrace {
    path: PathBuf,
    reading: Reading,
    trace: Trace,
}

impl<'a> Files<'a> {
    /// Creates a reader whose paths are relative to the folder of the scenario file.
    pub(crate) fn for_scenario(scenario_file: &str, reader: &'a FileReader<'a>) -> Self {
        let folder = Path::new(scenario_file).parent().unwrap_or(Path::new(""));
        Self {
            folder: folder.to_owned(),
            reader,
            read: RefCell::default(),
        }
    }

    /// Returns the text of a file, or one line with its name and the error.
    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        let path = self.folder.join(name);
        let content = self.read.borrow_mut().content(&path, self.reader);
        content
            .and_then(utf8)
            .map_err(|message| format!("{}: {message}", path.display()))
    }

    /// Returns the path of a file, as errors name it.
    pub(crate) fn displayed(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Returns the trace in a file, or the name of the file and the error.
    pub(crate) fn trace(
        &self,
        name: &str,
        reading: Reading,
    ) -> Result<Trace, (String, TraceError)> {
        let path = self.folder.join(name);
        let mut read = self.read.borrow_mut();
        let same = |known: &&CachedTrace| known.path == path && known.reading == reading;
        if let Some(known) = read.known.iter().find(same) {
            return Ok(known.trace.clone());
        }
        let wrong = |wrong| (path.display().to_string(), wrong);
        let content = read
            .content(&path, self.reader)
            .map_err(|message| wrong(TraceError::file(message)))?;
        let text = match reading.format {
            TraceFormat::Parquet => parquet::text_of(&content),
            _ => utf8(content),
        };
        let text = text.map_err(|message| wrong(TraceError::file(message)))?;
        let trace = parse(&text, reading).map_err(wrong)?;
        read.known.push(CachedTrace {
            path: path.clone(),
            reading,
            trace: trace.clone(),
        });
        Ok(trace)
    }
}

impl Read {
    /// Returns the content of a file, and adds its length to what has been read.
    fn content(&mut self, path: &Path, reader: &FileReader<'_>) -> Result<Vec<u8>, String> {
        let content = reader(path)?;
        self.bytes += content.len() as u64;
        if self.bytes > MAX_TRACES_BYTES {
            return Err("expected at most 256 MiB of trace files in all".to_owned());
        }
        Ok(content)
    }
}

/// Reads a file from disk.
pub(crate) fn from_disk(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    // A pipe or a device may block or never end, so it is not opened.
    let is_file = std::fs::metadata(path).map_err(unreadable)?.is_file();
    if !is_file {
        return Err("not a file".to_owned());
    }
    let mut content = Vec::new();
    File::open(path)
        .map_err(unreadable)?
        .take(MAX_TRACE_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(unreadable)?;
    if content.len() as u64 > MAX_TRACE_BYTES {
        return Err("longer than 64 MiB".to_owned());
    }
    Ok(content)
}

fn utf8(content: Vec<u8>) -> Result<String, String> {
    String::from_utf8(content).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line} is not UTF-8 text")
    })
}
