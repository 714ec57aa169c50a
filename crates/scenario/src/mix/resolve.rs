//! Mixes of applications.

use std::collections::BTreeMap;
use std::sync::Arc;

use bentpipe_sim::applications::{MixSettings, Share};
use bentpipe_sim::{Distribution, Traffic};

use crate::application::datagrams::Datagrams;
use crate::application::resolve::resolve_activity;
use crate::application::schema::{AppFile, AppKind};
use crate::error::quoted;
use crate::fault::{Fault, fault};
use crate::hints::list;
use crate::mix::schema::MixFile;
use crate::named::Named;
use crate::suggest::suggest;

/// The mixes of a file, by name.
pub(crate) type Mixes = BTreeMap<String, Traffic>;

const MOST_SHARES: usize = 32;

pub(crate) fn resolve_mixes(
    file: &Named<MixFile>,
    datagrams: Datagrams<'_>,
) -> Result<Mixes, Fault> {
    let mixes = file
        .iter()
        .map(|(name, mix)| Ok((name.to_owned(), resolve_one(name, mix, datagrams)?)));
    mixes.collect()
}

fn resolve_one(name: &str, mix: &MixFile, datagrams: Datagrams<'_>) -> Result<Traffic, Fault> {
    let here = |message: String| Err(fault(&["mixes", name], message));
    if mix.shares.is_empty() || mix.shares.len() > MOST_SHARES {
        let message =
            format!("expected 1 to {MOST_SHARES} applications and their shares: web = 0.7");
        return here(message);
    }
    let mut shares: Vec<Share> = Vec::new();
    for (share_name, share) in &mix.shares {
        let share_name = share_name.as_str();
        if !share.share.is_finite() || share.share <= 0.0 {
            let message = format!("expected a share above 0, got {:?}", share.share);
            return Err(fault(&["mixes", name, share_name], message));
        }
        let kind = AppKind::ALL.iter().find(|kind| kind.name() == share_name);
        let app = match (&share.app, kind) {
            (Some(app), _) => app.clone(),
            (None, Some(kind)) => AppFile::of(*kind),
            (None, None) => {
                let names: Vec<&str> = AppKind::ALL.iter().map(|kind| kind.name()).collect();
                let hint = match suggest(share_name, names.iter().copied()) {
                    Some(near) => format!("did you mean {}?", quoted(near)),
                    None => format!("known: {}.", list(&names)),
                };
                let message = format!(
                    "no application is named {}; {hint} (For another name, give the application: {{ share = 0.7, app = {{ kind = \"web\" }} }}.)",
                    quoted(share_name)
                );
                return Err(fault(&["mixes", name, share_name], message));
            }
        };
        let traffic = resolve_activity(&app, datagrams)
            .map_err(|(key, message)| fault(&["mixes", name, share_name, "app", key], message))?;
        let twin = shares.iter().find(|other| {
            let datagrams = other.traffic.has_datagrams() && traffic.has_datagrams();
            datagrams && other.traffic.port() == traffic.port()
        });
        if let Some(twin) = twin {
            let message = format!(
                "expected one application over UDP or ICMP of its kind, and there is {}",
                quoted(&twin.name)
            );
            return Err(fault(&["mixes", name, share_name], message));
        }
        shares.push(Share {
            name: Arc::from(share_name),
            weight: share.share,
            traffic,
        });
    }
    Ok(Traffic::Mix(MixSettings {
        pause: mix
            .pause
            .map_or(Distribution::Exponential(30.0), |pause| pause.0),
        shares: Arc::from(shares),
    }))
}

/// Returns the mix that a flow names.
pub(crate) fn find_mix(mixes: &Mixes, name: &str) -> Result<Traffic, String> {
    if let Some(mix) = mixes.get(name) {
        return Ok(mix.clone());
    }
    let known = mixes.keys().map(String::as_str);
    Err(match suggest(name, known.clone()) {
        Some(near) => format!(
            "no mix is named {}; did you mean {}?",
            quoted(name),
            quoted(near)
        ),
        None if mixes.is_empty() => {
            format!(
                "no mix is named {}; expected a table such as [mixes.{name}]",
                quoted(name)
            )
        }
        None => {
            let known: Vec<&str> = known.collect();
            format!(
                "no mix is named {}; known: {}",
                quoted(name),
                known.join(", ")
            )
        }
    })
}
