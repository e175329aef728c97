// SPDX-License-Identifier: Apache-2.0
//! Runs a device on a wire.
//!
//! A device is an [`Engine`]: the simulated RTL ([`RtlEngine`]) or the software one ([`SoftEngine`]). [`Host`] puts it on a wire,
//! or on a UDP socket: it carries frames or datagrams, lets device time pass, and answers on the management socket.

#![deny(unsafe_code)]

mod acceptor;
mod engine;
mod error;
mod gate;
mod guest_time;
mod host;
mod in_process;
mod kernel;
mod loading;
mod manage;
mod place;
mod port;
mod rtl;
mod sim;
mod soft;
mod trace;

pub use acceptor::{Acceptor, AcceptorOptions};
pub use engine::{DatagramEngine, Engine, Facts, FrameEngine, Identity, WakeFds};
pub use error::DeviceError;
pub use gate::Gate;
pub use guest_time::{
    CardPair, DeviceCounters, GuestTime, GuestTimeConfig, GuestTimeError, GuestTimeSummary, Violation,
};
pub use host::{Host, SERVICE_PORT};
pub use in_process::{SoftDevice, SoftPlace};
pub use kernel::{Call, Cancellation, Failure, Kernel, KernelError, KernelSet, Regions, Run};
pub use manage::Management;
pub use nacelle_vhost::Listener;
pub use place::{DEFAULT_ADDRESS, Place};
pub use port::{EthernetPort, Port, UdpPort};
pub use rtl::{Bounds, RtlEngine, find_library};
pub use sim::{
    LineConfig, LineStats, MemoryFaults, PushError, Sim, SimConfig, SimInfo, SimLibrary, SimStats, SlotAnswer,
    SlotFacts, SlotInterrupt, SlotMessage, SlotSettings, SlotSpace, SlotStats, Stamp, Stop, Unmapped,
};
pub use soft::{IncomingRead, IncomingWrite, SoftConfig, SoftEngine, Window, Windows};
pub use trace::TraceLog;
