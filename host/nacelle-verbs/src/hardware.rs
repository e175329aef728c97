// SPDX-License-Identifier: Apache-2.0
//! An open device with what all of its connections share: protection domain, completion queue, event channels.

use core::ffi::{CStr, c_int, c_void};
use core::net::SocketAddr;
use core::ptr::{self, NonNull};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, epoll, eventfd};

use crate::abi::{self, CompChannel, Context, Cq, DeviceAttr, EventChannel, Mr, Pd, PortAttr, WorkCompletion};
use crate::library::Library;
use crate::{Place, VerbsError};

/// Completions that the queue holds, where the device can: those of eight connections with queues of the default depths.
const COMPLETIONS: c_int = 16 * 1024;

/// An open device. All functions that take it are safe to call from any thread at any time (`man ibv_create_cq`, `man rdma_cm`).
pub(crate) struct Hardware {
    pub(crate) library: &'static Library,
    /// librdmacm opened it, and closes it when the process ends.
    context: *mut Context,
    pub(crate) pd: *mut Pd,
    completions: *mut CompChannel,
    pub(crate) cq: *mut Cq,
    pub(crate) management: *mut EventChannel,
    /// Held while an event of connection management is read, or an identifier is destroyed.
    managing: Mutex<()>,
    /// Completions that the queue holds.
    pub(crate) capacity: usize,
    /// Notifications of the queue that were taken.
    notified: AtomicU32,
    /// Readable when something may have happened, of the queue only after it was armed.
    set: OwnedFd,
    /// In the set, for what is known to have happened.
    news: OwnedFd,
    pub(crate) limits: Limits,
    pub(crate) place: Place,
}

/// What the device can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Work requests of one queue.
    pub(crate) queue: usize,
    /// READs and atomics that a queue pair serves at a time.
    pub(crate) served: u8,
    /// READs and atomics that a queue pair may have outstanding.
    pub(crate) outstanding: u8,
    /// Code of the port's MTU.
    pub(crate) mtu: u8,
}

// SAFETY: the objects that the pointers name may be used from any thread: the libraries lock them.
unsafe impl Send for Hardware {}
// SAFETY: as above.
unsafe impl Sync for Hardware {}

/// Something that is destroyed unless it becomes part of a whole.
struct Undo<F: FnMut()>(F);

impl<F: FnMut()> Drop for Undo<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Hardware {
    /// Opens the device of a place.
    pub(crate) fn open(place: Place) -> Result<Self, VerbsError> {
        let library = Library::get()?;
        let context = context(library, place)?;
        let limits = limits(library, context, place)?;
        let system = |what, source: rustix::io::Errno| VerbsError::System { what, source: source.into() };
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| system("make an epoll set", error))?;
        let news = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let news = news.map_err(|error| system("make a counter of events", error))?;
        let (limits, most) = limits;
        let cqe = COMPLETIONS.min(most);
        // SAFETY: `context` is open for the rest of the process's life; each object is made of those before, and destroyed once, in
        // the opposite order: here if a later one cannot be made, else when the value is dropped.
        unsafe {
            let pd = some((library.ibv_alloc_pd)(context), "allocate a protection domain")?;
            let undo_pd = Undo(|| _ = (library.ibv_dealloc_pd)(pd));
            let completions = some((library.ibv_create_comp_channel)(context), "make a completion channel")?;
            let undo_channel = Undo(|| _ = (library.ibv_destroy_comp_channel)(completions));
            let cq = (library.ibv_create_cq)(context, cqe, ptr::null_mut(), completions, 0);
            let cq = some(cq, "make a completion queue")?;
            let undo_cq = Undo(|| _ = (library.ibv_destroy_cq)(cq));
            let management = some((library.rdma_create_event_channel)(), "open the RDMA connection manager")?;
            let undo_management = Undo(|| (library.rdma_destroy_event_channel)(management));
            for fd in [(*completions).fd, (*management).fd] {
                let fd = BorrowedFd::borrow_raw(fd);
                let flags = rustix::fs::fcntl_getfl(fd).map_err(|error| system("read a channel's flags", error))?;
                let flags = flags | rustix::fs::OFlags::NONBLOCK;
                rustix::fs::fcntl_setfl(fd, flags).map_err(|error| system("make a channel non-blocking", error))?;
                watch(&set, fd)?;
            }
            watch(&set, news.as_fd())?;
            let _kept = ManuallyDrop::new((undo_pd, undo_channel, undo_cq, undo_management));
            let (capacity, notified) = (cqe as usize, AtomicU32::new(0));
            let managing = Mutex::new(());
            Ok(Self {
                library,
                context,
                pd,
                completions,
                cq,
                management,
                managing,
                capacity,
                notified,
                set,
                news,
                limits,
                place,
            })
        }
    }

    /// Whether a connection manager's identifier is bound to this device.
    pub(crate) fn is(&self, context: *mut Context) -> bool {
        self.context == context
    }

    /// Keeps others from reading events of connection management, and from destroying identifiers. It is held shortly.
    pub(crate) fn managing(&self) -> MutexGuard<'_, ()> {
        self.managing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes completions out of the queue. Returns how many.
    pub(crate) fn poll(&self, into: &mut [WorkCompletion]) -> usize {
        // SAFETY: the queue and its context live as long as `self`; `into` has room for as many as are asked for.
        let count = unsafe { ((*(*self.cq).context).ops.poll_cq)(self.cq, into.len() as c_int, into.as_mut_ptr()) };
        usize::try_from(count).unwrap_or(0)
    }

    /// Lets the next completion make the descriptor readable.
    pub(crate) fn arm(&self) {
        // SAFETY: as in `poll`.
        let _error_of_a_lost_device = unsafe { ((*(*self.cq).context).ops.req_notify_cq)(self.cq, 0) };
    }

    /// Makes the descriptor readable.
    pub(crate) fn announce(&self) {
        // A counter that is full says so already.
        let _ = rustix::io::write(&self.news, &1u64.to_ne_bytes());
    }

    /// Takes what made the descriptor readable, events of connection management aside.
    pub(crate) fn clear(&self) {
        let _may_be_zero = rustix::io::read(&self.news, &mut [0; 8]);
        let (mut cq, mut context) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the channel lives as long as `self` and does not block.
        while unsafe { (self.library.ibv_get_cq_event)(self.completions, &raw mut cq, &raw mut context) } == 0 {
            self.notified.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

impl Drop for Hardware {
    fn drop(&mut self) {
        // SAFETY: everything made of these objects has a reference to `self`, and so is gone. A queue is destroyed when all
        // notifications that were taken are acknowledged, or waits for ever.
        unsafe {
            (self.library.rdma_destroy_event_channel)(self.management);
            (self.library.ibv_ack_cq_events)(self.cq, *self.notified.get_mut());
            (self.library.ibv_destroy_cq)(self.cq);
            (self.library.ibv_destroy_comp_channel)(self.completions);
            (self.library.ibv_dealloc_pd)(self.pd);
        }
    }
}

/// Memory that the device may access.
pub(crate) struct Registration {
    hardware: Arc<Hardware>,
    mr: *mut Mr,
}

// SAFETY: as `Hardware`.
unsafe impl Send for Registration {}

impl Registration {
    /// Registers bytes, of which there is one at least.
    ///
    /// # Safety
    /// The bytes stay where they are until the registration is released, and their owner grants what `access` (`ibv_access_flags`)
    /// lets the device do.
    pub(crate) unsafe fn new(
        hardware: &Arc<Hardware>,
        bytes: NonNull<[u8]>,
        access: c_int,
    ) -> Result<Self, VerbsError> {
        // SAFETY: by the contract of this function; the protection domain lives as long as `hardware`.
        let mr =
            unsafe { (hardware.library.ibv_reg_mr)(hardware.pd, bytes.as_ptr().cast::<c_void>(), bytes.len(), access) };
        if mr.is_null() {
            let error = io::Error::last_os_error();
            return Err(match error.raw_os_error() {
                Some(libc::ENOMEM | libc::EAGAIN) => VerbsError::MemoryLock { length: bytes.len() },
                _ => VerbsError::System { what: "register memory with the RDMA NIC", source: error },
            });
        }
        Ok(Self { hardware: Arc::clone(hardware), mr })
    }

    pub(crate) fn lkey(&self) -> u32 {
        // SAFETY: the region lives as long as `self`.
        unsafe { (*self.mr).lkey }
    }

    pub(crate) fn rkey(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.mr).rkey }
    }

    /// Ends the device's access. Returns whether it has ended: if not, the bytes must stay.
    #[must_use]
    pub(crate) fn release(self) -> bool {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used again, and gives its reference back once.
        unsafe {
            let hardware = ptr::read(&raw const this.hardware);
            (hardware.library.ibv_dereg_mr)(this.mr) == 0
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Nobody could keep the bytes from being used again.
        // SAFETY: the region was registered, and was not released.
        if unsafe { (self.hardware.library.ibv_dereg_mr)(self.mr) } != 0 {
            eprintln!("nacelle: the RDMA NIC does not give memory back: {}", io::Error::last_os_error());
            std::process::abort();
        }
    }
}

fn some<T>(made: *mut T, what: &'static str) -> Result<*mut T, VerbsError> {
    if made.is_null() { Err(VerbsError::last(what)) } else { Ok(made) }
}

fn watch(set: &OwnedFd, fd: BorrowedFd<'_>) -> Result<(), VerbsError> {
    epoll::add(set, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
        .map_err(|source| VerbsError::System { what: "watch a channel", source: source.into() })
}

/// The device as librdmacm has opened it.
fn context(library: &Library, place: Place) -> Result<*mut Context, VerbsError> {
    let wanted = place.device.to_string();
    let mut count = 0;
    // SAFETY: the list has `count` open devices, and is freed once; the devices stay open.
    unsafe {
        let list = some((library.rdma_get_devices)(&raw mut count), "open the RDMA connection manager")?;
        let all = core::slice::from_raw_parts(list, usize::try_from(count).unwrap_or(0));
        let found = all.iter().copied().find(|context| {
            let name = (library.ibv_get_device_name)((**context).device);
            !name.is_null() && CStr::from_ptr(name).to_bytes() == wanted.as_bytes()
        });
        (library.rdma_free_devices)(list);
        let what = "open the RDMA device: its provider is missing, or this user may not";
        found.ok_or_else(|| VerbsError::System { what, source: io::Error::from_raw_os_error(libc::EACCES) })
    }
}

/// The device's limits, and how many completions a queue may have.
fn limits(library: &Library, context: *mut Context, place: Place) -> Result<(Limits, c_int), VerbsError> {
    // SAFETY: zeros are a value of these plain structures.
    let (mut device, mut port): (DeviceAttr, PortAttr) = unsafe { core::mem::zeroed() };
    // SAFETY: the device is open, and both have room for what is written (the test of `abi`).
    let failed = unsafe {
        (library.ibv_query_device)(context, &raw mut device) != 0
            || (library.ibv_query_port)(context, place.port, &raw mut port) != 0
    };
    if failed {
        return Err(VerbsError::last("query the RDMA device"));
    }
    if port.state != abi::PORT_ACTIVE {
        return Err(VerbsError::PortDown { device: place.device, port: place.port, state: "not active".into() });
    }
    let byte = |number: c_int| u8::try_from(number.clamp(0, 255)).unwrap_or(u8::MAX);
    let limits = Limits {
        queue: usize::try_from(device.max_qp_wr).unwrap_or(0),
        served: byte(device.max_qp_rd_atom),
        outstanding: byte(device.max_qp_init_rd_atom),
        mtu: u8::try_from(port.active_mtu).unwrap_or(0),
    };
    Ok((limits, device.max_cqe))
}

/// `struct sockaddr` of an address.
pub(crate) fn sockaddr(address: SocketAddr) -> libc::sockaddr_storage {
    // SAFETY: zeros are a value of this plain structure.
    let mut storage: libc::sockaddr_storage = unsafe { core::mem::zeroed() };
    let at = (&raw mut storage).cast::<c_void>();
    match address {
        SocketAddr::V4(v4) => {
            let sin = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: a `sockaddr_storage` has room for every kind of address.
            unsafe { at.cast::<libc::sockaddr_in>().write(sin) };
        }
        SocketAddr::V6(v6) => {
            let sin6 = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { at.cast::<libc::sockaddr_in6>().write(sin6) };
        }
    }
    storage
}
