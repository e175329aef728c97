// SPDX-License-Identifier: Apache-2.0
//! The description of the device, and before it a record of its load: a region that every caller may READ
//! (docs/reference/device-description.md).

use nacelle::description::{Description, Function, Kind};
use nacelle_roce::{Access, ConnectOptions};
use nacelle_wire::extensions::{Agreement, Extensions};
use nacelle_wire::{DescriptionLocation, LoadRecord, RemoteAddr};

use super::SoftEngine;
use super::load::Told;
use super::setup::MAX_REGIONS;

impl SoftEngine {
    /// What the device says of itself. Where kernels change, it keeps its length: that with the functions of all of them, filled up with
    /// spaces.
    fn describe(&self) -> Vec<u8> {
        let kernels = &self.config.kernels;
        let mut text = self.describe_with(kernels.functions().cloned().collect());
        if let Some(all) = kernels.all_functions() {
            text.resize(self.describe_with(all.cloned().collect()).len(), b' ');
        }
        text
    }

    fn describe_with(&self, functions: Vec<Function>) -> Vec<u8> {
        let mut description = Description::new("soft", Kind::Soft, functions);
        let revision = option_env!("NACELLE_REVISION").and_then(|revision| revision.get(..8)).unwrap_or("00000000");
        description.build = format!("{revision}-{}", env!("CARGO_PKG_VERSION"));
        description.memory_bytes = self.config.memory_bytes;
        description.max_regions = MAX_REGIONS as u32;
        description.max_contexts = self.offer().contexts.into();
        description.load_bytes = LoadRecord::LEN as u32;
        description.to_json()
    }

    /// Registers the description of the device, for every connection to read.
    pub(super) fn publish(&mut self) {
        let load = LoadRecord::default();
        let text = self.describe();
        let length = text.len() as u32;
        let bytes = [&load.to_bytes()[..], &text].concat();
        let region = self.endpoint.transport.register(bytes, Access::REMOTE_READ, self.config.connect.domain).ok();
        self.told = region.map(|region| Told { region: region.id, load, since: self.turn });
        self.description = region.map(|region| DescriptionLocation {
            addr: RemoteAddr(region.addr.0 + LoadRecord::LEN as u64),
            rkey: region.rkey,
            length,
        });
    }

    /// Writes the description again, whose functions have changed; then the record says so.
    pub(super) fn publish_again(&mut self) {
        let text = self.describe();
        let Some(told) = &self.told else { return };
        if let Some(memory) = self.endpoint.transport.region_mut(told.region) {
            // It has the same length each time.
            let _ = memory.write(LoadRecord::LEN, &text);
        }
        self.tell_load(true);
    }

    /// What is offered beyond the standard and selective repeat: every context has at least one region.
    fn offer(&self) -> Agreement {
        Agreement::new(
            Extensions::CONTEXTS | Extensions::LONG_SET_UP | Extensions::WINDOWS,
            self.config.contexts.min(MAX_REGIONS as u8),
        )
    }

    /// How connections are accepted: the REP says where the description is.
    pub(super) fn accept_options(&self) -> ConnectOptions {
        let private_data = self.description.map(|place| place.to_bytes().to_vec()).unwrap_or_default();
        ConnectOptions { private_data, agreement: self.offer(), ..self.config.connect.clone() }
    }
}
