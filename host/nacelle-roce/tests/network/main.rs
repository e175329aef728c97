// SPDX-License-Identifier: Apache-2.0
//! Whole endpoints under a seeded network in virtual time.
#![allow(unreachable_pub)] // modules of one test

mod bounds;
mod congestion;
mod conn;
mod figures;
mod gone;
mod goodput;
mod hold;
mod keys;
mod lent;
mod marks;
mod names;
mod neighbours;
mod netif;
mod numbers;
mod raw;
mod reads;
mod repeats;
mod replay;
mod selective;
mod sim;
mod soak;
mod traffic;
mod transport;
mod unmanaged;
