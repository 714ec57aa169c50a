//! Adaptive coding and modulation, as data.

use serde_json::{Value, json};

use crate::acm::modcod::Acm;

/// Returns the modes of modulation and coding, and the time of each change since the start of the
/// run or of a period.
pub(crate) fn acm_data(acm: &Acm) -> Value {
    let name = |mode: Option<usize>| mode.map(|mode| acm.modes[mode].name);
    let course = acm.course.iter();
    json!({
        "modes": acm.modes.len(),
        "symbol_rate_baud": acm.symbol_rate,
        "clear_sky_es_n0_db": acm.clear_sky_db,
        "margin_db": acm.margin_db,
        "hysteresis_db": acm.hysteresis_db,
        "clear_sky_mode": name(acm.in_clear_sky()),
        "course": course
            .map(|(at, mode)| json!({ "at_s": at.as_secs_f64(), "mode": name(*mode) }))
            .collect::<Vec<_>>(),
    })
}
