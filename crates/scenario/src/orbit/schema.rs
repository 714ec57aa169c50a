//! `[constellations.NAME]`, `[sites.NAME]` and the `path` of a link.

use std::fmt;

use bentpipe_types::words;
use schemars::{JsonSchema, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::changes::schema::{InFlightName, SendingName};
use crate::quantity::angle::Angle;
use crate::quantity::distance::Distance;
use crate::quantity::probability::Probability;
use crate::quantity::random::RandomLength;
use crate::quantity::scalar::inline_schema;
use crate::quantity::time::{Delay, Length};

/// Satellites of one system: a preset, a file of orbital elements, a shell of circular orbits, or
/// geostationary satellites.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConstellationFile {
    /// A published constellation: "starlink-shell-1", "kuiper-shell-1", "oneweb", "iridium" or
    /// "meo-ring". `bentpipe list constellations` has their figures and sources.
    pub preset: Option<String>,
    /// Path of a file with orbital elements, relative to the scenario file's folder: TLE, or OMM as
    /// JSON. SGP4 propagates them.
    pub file: Option<String>,
    /// For a file: the instant at which the run starts, in universal time ("2026-06-01T12:00:00Z").
    /// Default: the newest epoch in the file.
    pub start: Option<String>,
    /// For geostationary satellites: their longitudes east.
    pub longitudes: Option<Vec<Angle>>,
    /// For a shell: altitude above the equatorial radius. 100 km or more.
    pub altitude: Option<Distance>,
    /// For a shell: inclination of its orbits. "0 deg" to "180 deg".
    pub inclination: Option<Angle>,
    /// For a shell: number of orbital planes.
    pub planes: Option<u32>,
    /// For a shell: number of satellites in each plane.
    pub satellites_per_plane: Option<u32>,
    /// For a shell: Walker's phasing factor F. With T satellites, one is 360 F / T degrees ahead of
    /// its neighbour in the plane to the west. Default: 0.
    pub phasing: Option<u32>,
    /// For a shell: spacing of its planes. Default: "delta".
    pub pattern: Option<PatternName>,
    /// For a shell or a preset: longitude at which the first plane crosses the equator northbound
    /// at the start. Default: "0 deg".
    pub ascending_node: Option<Angle>,
    /// For a shell or a preset: angle from there to the first satellite along its orbit at the
    /// start. Default: "0 deg".
    pub phase: Option<Angle>,
}

words! {
    /// Spacing of orbital planes.
    PatternName {
        /// Planes over 360 degrees of longitude (Walker delta): northbound and southbound
        /// satellites everywhere.
        Delta = "delta",
        /// Planes over 180 degrees (Walker star), for near-polar orbits.
        Star = "star",
    }
}

/// A place from which satellites are seen.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SiteFile {
    /// Latitude north (WGS 84). "-90 deg" to "90 deg".
    pub latitude: Option<Angle>,
    /// Longitude east.
    pub longitude: Option<Angle>,
    /// Height above the ellipsoid. Default: "0 m".
    pub height: Option<Distance>,
    /// For a site that moves, in place of latitude, longitude and height: path of a file with its
    /// track, relative to the scenario file's folder. CSV ("time (s),latitude,longitude,height
    /// (m)"), or GPX whose first point is at the start of the run.
    pub track: Option<String>,
    /// Least elevation of satellites. "0 deg" to "90 deg". Default: "25 deg", the least of
    /// Starlink's terminals (FCC SAT-MOD-20181108-00083).
    pub min_elevation: Option<Angle>,
    /// Sectors of azimuth with a greater least elevation: buildings, mountains, a mast.
    pub mask: Option<Vec<MaskFile>>,
}

/// A sector of azimuth in which satellites must be higher.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaskFile {
    /// First azimuth, clockwise from north. "0 deg" to "360 deg".
    pub from: Angle,
    /// Last azimuth; less than `from` if the sector contains north.
    pub to: Angle,
    /// Least elevation.
    pub elevation: Angle,
}

/// A path over satellites between two sites. It determines the delay of both directions over time,
/// and outages when no satellite is in sight and at handovers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathFile {
    /// The constellation.
    pub constellation: String,
    /// Site of the terminal, whose elevation decides about its satellite.
    pub from: String,
    /// Site of the gateway, or a list of sites: the one with the shortest path is used.
    pub to: SiteNames,
    /// How packets get from the terminal's satellite to the gateway. Default: "bent-pipe".
    pub over: Option<OverName>,
    /// Rule for the terminal's satellite. Default: "highest" over a bent pipe, "shortest" over
    /// inter-satellite links.
    pub select: Option<SelectName>,
    /// Time between two decisions about the satellite, counted from the start. "100 ms" to "1 h".
    /// Default: "15 s".
    pub slot: Option<Length>,
    /// For `select` = "highest": how much higher another satellite must be than the serving one.
    /// Default: "0 deg".
    pub hysteresis: Option<Angle>,
    /// Delay in each direction in addition to propagation: scheduling, framing, processing.
    /// Default: "0 s".
    pub extra_delay: Option<Delay>,
    /// Variation of delay and losses beyond the geometry, drawn from the seed: the further delay of
    /// each slot ("uniform(0 ms, 8 ms)"), a preset with published measurements
    /// ("starlink-europe-2023", "starlink-australia-2024", "starlink-replayer-2025"; `bentpipe list
    /// variations` has their sources), or a table. Default: none.
    pub variation: Option<VariationFile>,
    /// Duration of the outage at a change of the terminal's satellite, or of the gateway's.
    /// Default: "0 s", none.
    pub handover: Option<Length>,
    /// Duration of the outage at a change of the gateway. Default: that of `handover`.
    pub gateway_handover: Option<Length>,
    /// Effect of handovers and gaps on packets that would be sent during them. Default: "lost".
    pub sending: Option<SendingName>,
    /// Effect of handovers and gaps on packets in transit. Default: "lost".
    pub in_flight: Option<InFlightName>,
    /// With `acm`: distance from the terminal to the satellite for which `es_n0` holds. Es/N0 falls
    /// with the square of the distance. Default: the altitude of a shell or preset, or that of a
    /// geostationary orbit; required for a file.
    pub es_n0_range: Option<Distance>,
    /// Time between two samples of the delay, which is linear in between. "10 ms" to "60 s".
    /// Default: "1 s".
    pub step: Option<Length>,
}

/// The key `variation` of a path.
#[derive(Clone, PartialEq, Debug)]
pub enum VariationFile {
    /// The further delay of each slot.
    Slots(RandomLength),
    /// Name of a preset.
    Preset(String),
    /// A table.
    Table(Box<VariationTable>),
}

/// Variation of a path's delay and losses. Each key replaces that of `preset`. The boundaries of
/// slots are every `slot`, whether the satellite changes or not: terminals cannot tell.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VariationTable {
    /// Published measurements: "starlink-europe-2023", "starlink-australia-2024" or
    /// "starlink-replayer-2025". Default: none, and the keys below are zero.
    pub preset: Option<String>,
    /// Further delay of each slot, the same in both directions: "uniform(0 ms, 8 ms)".
    pub offset: Option<RandomLength>,
    /// Further delay that changes within a slot, in each direction on its own. Packets keep their
    /// order, unless `in_order` is false.
    pub jitter: Option<RandomLength>,
    /// Time between two changes of the jitter. At least "1 ms". Default: "20 ms".
    pub jitter_every: Option<Length>,
    /// Further delay around each boundary of slots, drawn for each boundary and direction.
    pub spike: Option<RandomLength>,
    /// Duration of spikes before the boundary. Default: "75 ms" (Casparsen et al., 2026).
    pub spike_before: Option<Length>,
    /// Duration of spikes after the boundary. At least "1 ms". Default: "140 ms" (Casparsen et al.,
    /// 2026).
    pub spike_after: Option<Length>,
    /// Probability that a packet is lost, in addition to the losses of `errors`.
    pub packet_loss_rate: Option<Probability>,
    /// The same during spikes. Default: as `packet_loss_rate`.
    pub boundary_loss_rate: Option<Probability>,
}

words! {
    /// How packets get to the gateway.
    OverName {
        /// Over one satellite that terminal and gateway see.
        BentPipe = "bent-pipe",
        /// Over links between satellites of a shell, on the shortest path. Each satellite has four:
        /// two in its plane, and one to each neighbouring plane.
        InterSatelliteLinks = "inter-satellite-links",
    }
}

words! {
    /// Rule for the terminal's satellite.
    SelectName {
        /// The one with the highest elevation.
        Highest = "highest",
        /// The one that stays in sight for the longest time; it serves until it sets.
        Longest = "longest",
        /// The one with the shortest path to the gateway.
        Shortest = "shortest",
    }
}

/// One site or several.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(from = "OneOrMore")]
pub struct SiteNames(pub Vec<String>);

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a site such as \"gateway\", or a list of sites"
)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl From<OneOrMore> for SiteNames {
    fn from(value: OneOrMore) -> Self {
        match value {
            OneOrMore::One(name) => Self(vec![name]),
            OneOrMore::More(names) => Self(names),
        }
    }
}

inline_schema!(SiteNames, |_generator| json_schema!({
    "anyOf": [
        { "type": "string" },
        { "type": "array", "items": { "type": "string" }, "minItems": 1 },
    ],
    "examples": ["gateway", ["gateway-north", "gateway-south"]],
}));

impl<'de> Deserialize<'de> for VariationFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Variations;
        impl<'de> Visitor<'de> for Variations {
            type Value = VariationFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a time such as "uniform(0 ms, 8 ms)", a preset, or a table"#)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<VariationFile, E> {
                let is_name = text.starts_with(|first: char| first.is_ascii_alphabetic())
                    && !text.contains('(');
                if is_name {
                    return Ok(VariationFile::Preset(text.to_owned()));
                }
                text.parse().map(VariationFile::Slots).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<VariationFile, A::Error> {
                let table = VariationTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(VariationFile::Table(Box::new(table)))
            }
        }
        deserializer.deserialize_any(Variations)
    }
}

inline_schema!(VariationFile, |generator| {
    let table = generator.subschema_for::<VariationTable>();
    json_schema!({
        "anyOf": [
            { "type": "string" },
            table,
        ],
        "examples": ["uniform(0 ms, 8 ms)", "starlink-europe-2023"],
    })
});
