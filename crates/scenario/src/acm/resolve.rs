//! Adaptive coding and modulation of a direction: rate and outages from the attenuation.

use bentpipe_link::{Changes, Outages, Profile, RateCourse};

use crate::acm::modcod::{Acm, DVB_S2, DVB_S2X};
use crate::acm::schema::{AcmFile, ModesName};
use crate::changes::outages::{MOST_OUTAGES, in_flight, sending};
use crate::fault::Fault;
use crate::link::settings::Way;
use crate::link::table::{Key, LinkTable};
use crate::quantity::decibels::Decibels;
use crate::quantity::symbol_rate::SymbolRate;
use crate::quantity::time::LONGEST;

impl LinkTable<'_> {
    /// Returns the settings of `acm`, without attenuation.
    pub(crate) fn acm(&self, key: &Key<&AcmFile>, way: Way) -> Result<Option<Acm>, Fault> {
        let Some(file) = key.value else {
            return Ok(None);
        };
        let acm = resolve(file);
        acm.map(Some)
            .map_err(|(name, message)| Fault::new(self.path(way, key.own, &["acm", name]), message))
    }

    /// Sets rate and outages according to the modes that the attenuation allows.
    pub(crate) fn fade(
        &self,
        way: Way,
        key: &Key<&AcmFile>,
        acm: &mut Acm,
        attenuation: &Profile<f64>,
        changes: &mut Changes,
    ) -> Result<(), Fault> {
        acm.follow(attenuation.steps());
        let every = attenuation.period();
        let rates: Vec<_> = (acm.course.iter())
            .map(|(at, mode)| (*at, acm.rate(*mode)))
            .collect();
        if let Some(rates) = Profile::new(rates, every) {
            changes.rate = RateCourse::Steps(rates);
        }
        let file = key.value;
        let outages = acm.away().map(|(at, until)| {
            let until = until.or(every).unwrap_or(LONGEST);
            let lasts = until.saturating_sub(at);
            // An outage of the whole period never ends.
            let is_whole = every == Some(lasts);
            Outages {
                at,
                lasts: if is_whole { LONGEST } else { lasts },
                every: every.filter(|_| !is_whole),
                sending: sending(file.and_then(|file| file.sending)),
                in_flight: in_flight(file.and_then(|file| file.in_flight)),
            }
        });
        changes.outages.extend(outages);
        if changes.outages.len() > MOST_OUTAGES {
            let message = format!(
                "expected at most {MOST_OUTAGES} outages, got {}: more hysteresis makes fewer",
                changes.outages.len()
            );
            return Err(Fault::new(
                self.path(way, key.own, &["acm", "hysteresis"]),
                message,
            ));
        }
        Ok(())
    }
}

fn resolve(file: &AcmFile) -> Result<Acm, (&'static str, String)> {
    let not_negative = |key, given: Option<Decibels>, default: f64| {
        let db = given.unwrap_or(Decibels(default)).not_negative();
        db.map_err(|message| (key, message))
    };
    let SymbolRate(symbol_rate) = file.symbol_rate;
    let acm = Acm {
        modes: match file.modes.unwrap_or(ModesName::DvbS2x) {
            ModesName::DvbS2 => DVB_S2.to_vec(),
            ModesName::DvbS2x => DVB_S2.iter().chain(&DVB_S2X).copied().collect(),
        },
        symbol_rate,
        clear_sky_db: file.es_n0.0,
        margin_db: not_negative("margin", file.margin, 1.0)?,
        hysteresis_db: not_negative("hysteresis", file.hysteresis, 0.5)?,
        course: Vec::new(),
    };
    if acm.in_clear_sky().is_none() {
        let least = (acm.least_clear_sky_db() * 100.0).round() / 100.0;
        let message = format!(
            r#"expected at least "{}", from which the most robust mode works with margin and hysteresis, got "{}""#,
            Decibels(least),
            file.es_n0
        );
        return Err(("es_n0", message));
    }
    Ok(acm)
}
