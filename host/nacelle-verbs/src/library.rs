// SPDX-License-Identifier: Apache-2.0
//! The two libraries, loaded when they are first needed.

use core::ffi::{c_int, c_uint, c_void};
use std::sync::OnceLock;

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};

use crate::VerbsError;
use crate::abi::{
    CmEvent, CmId, CompChannel, ConnParam, Context, Cq, DeviceAttr, EventChannel, Mr, Name, Pd, PortAttr, QpInit,
};

const VERBS: &str = "libibverbs.so.1";
const CM: &str = "librdmacm.so.1";

macro_rules! library {
    ($($file:ident { $($name:ident: fn($($argument:ty),*) -> $result:ty;)* })*) => {
        /// The functions that this crate calls. They stay loaded.
        pub(crate) struct Library {
            $($(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> $result,)*)*
        }

        impl Library {
            fn load() -> Result<Self, (&'static str, String)> {
                Ok(Self { $($($name: {
                    let symbol = concat!(stringify!($name), "\0").as_bytes();
                    // SAFETY: the function has this signature in every version of the library with this file name.
                    let found = unsafe { loaded($file)?.get(symbol) };
                    *found.map_err(|error| ($file, error.to_string()))?
                },)*)* })
            }
        }
    };
}

library! {
    CM {
        rdma_create_event_channel: fn() -> *mut EventChannel;
        rdma_destroy_event_channel: fn(*mut EventChannel) -> ();
        rdma_create_id: fn(*mut EventChannel, *mut *mut CmId, *mut c_void, c_uint) -> c_int;
        rdma_destroy_id: fn(*mut CmId) -> c_int;
        rdma_resolve_addr: fn(*mut CmId, *mut c_void, *mut c_void, c_int) -> c_int;
        rdma_resolve_route: fn(*mut CmId, c_int) -> c_int;
        rdma_create_qp: fn(*mut CmId, *mut Pd, *mut QpInit) -> c_int;
        rdma_destroy_qp: fn(*mut CmId) -> ();
        rdma_connect: fn(*mut CmId, *mut ConnParam) -> c_int;
        rdma_disconnect: fn(*mut CmId) -> c_int;
        rdma_get_cm_event: fn(*mut EventChannel, *mut *mut CmEvent) -> c_int;
        rdma_ack_cm_event: fn(*mut CmEvent) -> c_int;
        rdma_set_option: fn(*mut CmId, c_int, c_int, *mut c_void, usize) -> c_int;
        rdma_get_devices: fn(*mut c_int) -> *mut *mut Context;
        rdma_free_devices: fn(*mut *mut Context) -> ();
    }
    VERBS {
        ibv_get_device_name: fn(*mut c_void) -> Name;
        ibv_query_device: fn(*mut Context, *mut DeviceAttr) -> c_int;
        ibv_query_port: fn(*mut Context, u8, *mut PortAttr) -> c_int;
        ibv_alloc_pd: fn(*mut Context) -> *mut Pd;
        ibv_dealloc_pd: fn(*mut Pd) -> c_int;
        ibv_reg_mr: fn(*mut Pd, *mut c_void, usize, c_int) -> *mut Mr;
        ibv_dereg_mr: fn(*mut Mr) -> c_int;
        ibv_create_comp_channel: fn(*mut Context) -> *mut CompChannel;
        ibv_destroy_comp_channel: fn(*mut CompChannel) -> c_int;
        ibv_create_cq: fn(*mut Context, c_int, *mut c_void, *mut CompChannel, c_int) -> *mut Cq;
        ibv_destroy_cq: fn(*mut Cq) -> c_int;
        ibv_get_cq_event: fn(*mut CompChannel, *mut *mut Cq, *mut *mut c_void) -> c_int;
        ibv_ack_cq_events: fn(*mut Cq, c_uint) -> ();
    }
}

/// A library by its file name, which is one of the two.
fn loaded(name: &'static str) -> Result<&'static Loaded, (&'static str, String)> {
    static LOADED: [OnceLock<Result<Loaded, String>>; 2] = [OnceLock::new(), OnceLock::new()];
    let open = || {
        // SAFETY: what these libraries do when they are loaded needs nothing of this process.
        let opened = unsafe { Loaded::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
        opened.map_err(|error| error.to_string())
    };
    LOADED[usize::from(name == CM)].get_or_init(open).as_ref().map_err(|why| (name, why.clone()))
}

impl Library {
    /// The libraries, loaded by the first who asks.
    ///
    /// # Errors
    /// [`VerbsError::Library`] if one is missing, or lacks a function.
    pub(crate) fn get() -> Result<&'static Self, VerbsError> {
        static LIBRARY: OnceLock<Result<Library, (&'static str, String)>> = OnceLock::new();
        let got = LIBRARY.get_or_init(Self::load).as_ref();
        got.map_err(|(library, why)| VerbsError::Library { library, why: why.clone() })
    }
}
