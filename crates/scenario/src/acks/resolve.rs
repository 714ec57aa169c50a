//! Reduction of acknowledgments.

use bentpipe_types::Bytes;

use crate::acks::schema::{AcksFile, AcksKind, FilterMode, Spacing};
use crate::acks::settings::{Acks, WaterMarks};
use crate::fault::KeyError;
use crate::hints::list;
use crate::quantity::size::Size;

const LOW: (u32, u32) = (1, 1_000);

/// Default thresholds (samaraweera1999, section 5).
const DEFAULT: WaterMarks = WaterMarks {
    low: 4,
    high: 60,
    duplicates: None,
};

/// Number of duplicate acknowledgments that signals a loss (RFC 5681 section 3.2).
const FEWEST_DUPLICATES: u32 = 3;

/// The count in a compacted acknowledgment has one byte (samaraweera1999, section 6).
const MOST_COMPACTED: u32 = 255;

/// Default threshold: two segments (RFC 3449 section 5.3.1).
const DEFAULT_THRESHOLD: Bytes = Bytes::new(2 * 1460);

const MOST_THRESHOLD: u64 = 1 << 20;

pub(crate) fn resolve_acks(file: Option<AcksFile>) -> Result<Acks, KeyError> {
    let Some(file) = file else {
        return Ok(Acks::None);
    };
    let keys = file.kind.keys();
    if let Some(foreign) = file.given().find(|key| !keys.contains(key)) {
        let message = if keys.is_empty() {
            format!("has no effect with \"{}\"", file.kind)
        } else {
            let keys = list(keys).replace('"', "");
            format!("has no effect: \"{}\" has {keys}", file.kind)
        };
        return Err((foreign, message));
    }
    Ok(match file.kind {
        AcksKind::None => Acks::None,
        AcksKind::Suppression => Acks::Suppression(marks(&file, LOW.1)?),
        AcksKind::Compaction => Acks::Compaction {
            marks: marks(&file, MOST_COMPACTED)?,
            spacing: file.spacing.unwrap_or(Spacing::Off),
        },
        AcksKind::Reconstruction => {
            let threshold = file.threshold.unwrap_or(Size(DEFAULT_THRESHOLD));
            if !(1..=MOST_THRESHOLD).contains(&threshold.0.get()) {
                let message = format!(r#"expected "1 B" to "1 MiB", got "{threshold}""#);
                return Err(("threshold", message));
            }
            Acks::Reconstruction {
                marks: marks(&file, LOW.1)?,
                threshold: threshold.0,
            }
        }
        AcksKind::Filter => Acks::Filter(file.mode.unwrap_or(FilterMode::Conservative)),
    })
}

fn marks(file: &AcksFile, most: u32) -> Result<WaterMarks, KeyError> {
    let low = file.low.unwrap_or(DEFAULT.low);
    if !(LOW.0..=LOW.1).contains(&low) {
        let message = format!("expected {} to {}, got {low}", LOW.0, LOW.1);
        return Err(("low", message));
    }
    let high = file.high.unwrap_or(DEFAULT.high.max(low).min(most));
    if !(low..=most).contains(&high) {
        let message = if low > most {
            format!("expected low to be at most {most}, got low = {low}")
        } else {
            format!("expected low ({low}) to {most}, got {high}")
        };
        return Err(("high", message));
    }
    if let Some(few) = file.duplicates.filter(|&kept| kept < FEWEST_DUPLICATES) {
        let message = format!("expected {FEWEST_DUPLICATES} or more, which mark a loss, got {few}");
        return Err(("duplicates", message));
    }
    Ok(WaterMarks {
        low,
        high,
        duplicates: file.duplicates,
    })
}
