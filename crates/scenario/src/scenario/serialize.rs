//! A resolved scenario as data for reports and formulas, with units in the names, and nodes by
//! name.

use bentpipe_link::Access;
use serde::ser::{SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::access::build::access_terminals;
use crate::class::serialize::class_data;
use crate::class::settings::PacketClass;
use crate::flow::serialize::{flow_data, route_data};
use crate::flow::settings::Flow;
use crate::link::serialize::link_data;
use crate::link::settings::Link;
use crate::node::serialize::node_data;
use crate::node::settings::Node;
use crate::orbit::serialize::path_data;
use crate::probe::serialize::probes_data;
use crate::scenario::settings::Scenario;

impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name_of = |index: usize| self.nodes.get(index).map_or("", |node| node.name.as_str());
        let mut fields = serializer.serialize_struct("Scenario", 11)?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("description", &self.description)?;
        fields.serialize_field("duration_s", &self.duration.as_secs_f64())?;
        fields.serialize_field("seed", &self.seed)?;
        fields.serialize_field("ip", &self.ip)?;
        fields.serialize_field(
            "nodes",
            &Each(&self.nodes, |item: &Node| node_data(item, self)),
        )?;
        let places = access_terminals(self);
        let links: Vec<_> = self.links.iter().zip(0..).collect();
        fields.serialize_field(
            "links",
            &Each(&links, |(item, index): &(&Link, usize)| {
                let lag = |way| places.get(&(*index, way)).map(Access::lag);
                let mut data = link_data(item, lag, self.duration, name_of);
                if let Some(path) = &item.path {
                    data["path"] = path_data(path, &self.orbits);
                }
                data
            }),
        )?;
        let directions = self.direction_names();
        let routes = self.routes().unwrap_or_default();
        let flows: Vec<_> = self.flows.iter().zip(0..).collect();
        fields.serialize_field(
            "flows",
            &Each(&flows, |(item, index): &(&Flow, usize)| {
                let mut data = flow_data(item, name_of);
                data["route"] = route_data(routes.get(*index), &directions);
                data
            }),
        )?;
        fields.serialize_field(
            "classes",
            &Each(&self.classes, |item: &PacketClass| class_data(item, self)),
        )?;
        fields.serialize_field("host_timing", &self.host_timing)?;
        fields.serialize_field("probes", &probes_data(&self.probes))?;
        fields.end()
    }
}

/// A sequence whose items are created one at a time.
struct Each<'a, T, F>(&'a [T], F);

impl<T, F: Fn(&T) -> Value> Serialize for Each<'_, T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.0.len()))?;
        for item in self.0 {
            sequence.serialize_element(&(self.1)(item))?;
        }
        sequence.end()
    }
}
