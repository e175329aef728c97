// SPDX-License-Identifier: Apache-2.0
//! Whole endpoints under a seeded network in virtual time.
#![allow(unreachable_pub)] // modules of one test

mod congestion;
mod conn;
mod netif;
mod raw;
mod replay;
mod sim;
mod traffic;
mod transport;
