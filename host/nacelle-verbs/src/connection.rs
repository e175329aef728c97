// SPDX-License-Identifier: Apache-2.0
//! A connection: an identifier of the connection manager with a queue pair.

use core::ffi::{c_int, c_void};
use core::net::{IpAddr, SocketAddr};
use core::ptr;
use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use nacelle_roce::{ConnStats, ConnectOptions, DisconnectReason, Instant, Phase, SendWr};
use nacelle_wire::extensions::{Agreement, Extensions};

use crate::abi::{self, CmId, ConnParam, QpInit, RecvRequest, SendRequest};
use crate::hardware::{Hardware, sockaddr};

/// Private data of a REQ that is left beside the IP addresses, which librdmacm puts before it (annex A11).
const REQ_PRIVATE_DATA: usize = 56;
/// How long one attempt to find the way may take. The kernel misses an answer that comes at once, and looks again when the time of
/// the attempt is over.
const RESOLVE_EVERY: Duration = Duration::from_millis(100);
/// How long the answer to a REQ is waited for at least: Linux repeats a REQ every 4.3 s, whatever the options say.
const REQ_PATIENCE: Duration = Duration::from_secs(15);
/// Soft-RoCE takes 7 retries, the most that there are, for retries without end, and would never notice that a peer has vanished.
const MAX_RETRIES: u8 = 6;

/// Whom a connection is with, and how.
pub(crate) struct Connection {
    /// Its identifier, which is destroyed with it.
    id: *mut CmId,
    hardware: Arc<Hardware>,
    pub(crate) phase: Phase,
    pub(crate) peer: IpAddr,
    pub(crate) port: u16,
    pub(crate) options: ConnectOptions,
    /// When the phase has lasted too long.
    pub(crate) deadline: Option<Instant>,
    /// Why it is being ended.
    pub(crate) reason: DisconnectReason,
    /// Whether its end was reported.
    pub(crate) is_told: bool,
    pub(crate) agreement: Agreement,
    pub(crate) has_record: bool,
    pub(crate) remote_qpn: u32,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    /// Work requests in the queues, those that are held back included.
    pub(crate) sends: usize,
    pub(crate) recvs: usize,
    pub(crate) held: VecDeque<SendWr>,
    /// When those that are held back are posted.
    pub(crate) not_before: Option<Instant>,
    /// When the peer was last known to be alive.
    pub(crate) alive_at: Instant,
    /// Whether a WRITE without a byte is on its way, to see whether the peer is alive.
    pub(crate) is_probing: bool,
    /// Whether its next completion is reported by `poll_watched`.
    pub(crate) is_watched: bool,
    pub(crate) stats: ConnStats,
}

// SAFETY: the identifier may be used from any thread; librdmacm locks it.
unsafe impl Send for Connection {}

impl Connection {
    /// Begins to find the way to a peer.
    pub(crate) fn begin(
        hardware: &Arc<Hardware>,
        now: Instant,
        key: u64,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> io::Result<Self> {
        let library = hardware.library;
        let mut id = ptr::null_mut();
        // SAFETY: the channel lives as long as `hardware`, which the connection keeps. The context is a number.
        let made = unsafe {
            (library.rdma_create_id)(
                hardware.management,
                &raw mut id,
                ptr::without_provenance_mut(key as usize),
                abi::PS_TCP,
            )
        };
        check(made)?;
        let limits = hardware.limits;
        let options = ConnectOptions {
            send_depth: options.send_depth.min(limits.queue.saturating_sub(1)),
            recv_depth: options.recv_depth.min(limits.queue),
            responder_resources: options.responder_resources.min(limits.served),
            initiator_depth: options.initiator_depth.min(limits.outstanding),
            ..options
        };
        let patience = patience(&options);
        let connection = Self {
            id,
            hardware: Arc::clone(hardware),
            phase: Phase::Resolving,
            peer: peer.ip(),
            port: peer.port(),
            deadline: Some(now + patience),
            options,
            reason: DisconnectReason::Local,
            is_told: false,
            agreement: Agreement::default(),
            has_record: false,
            remote_qpn: 0,
            responder_resources: 0,
            initiator_depth: 0,
            sends: 0,
            recvs: 0,
            held: VecDeque::new(),
            not_before: None,
            alive_at: now,
            is_probing: false,
            is_watched: false,
            stats: ConnStats { started: now, ..ConnStats::default() },
        };
        connection.set_ack_timeout();
        connection.resolve()?;
        Ok(connection)
    }

    /// Looks for the way to the peer. When an attempt has run out of time, the next may follow.
    pub(crate) fn resolve(&self) -> io::Result<()> {
        let mut from = sockaddr(SocketAddr::new(self.hardware.place.address, 0));
        let mut to = sockaddr(SocketAddr::new(self.peer, self.port));
        let (from, to) = ((&raw mut from).cast::<c_void>(), (&raw mut to).cast::<c_void>());
        let attempt = milliseconds(RESOLVE_EVERY);
        // SAFETY: the identifier is there; both addresses are copied.
        check(unsafe { (self.hardware.library.rdma_resolve_addr)(self.id, from, to, attempt) })
    }

    /// Sets the time after which what is not acknowledged is sent again. A kernel that does not know it keeps its own.
    fn set_ack_timeout(&self) {
        let mut code = timeout_code(self.options.ack_timeout);
        // SAFETY: the option is one byte.
        let _may_be_unknown = unsafe {
            let option = (&raw mut code).cast::<c_void>();
            (self.hardware.library.rdma_set_option)(self.id, abi::OPTION_ID, abi::OPTION_ID_ACK_TIMEOUT, option, 1)
        };
    }

    /// The way to the peer is known: makes the queue pair.
    pub(crate) fn address_resolved(&mut self) -> io::Result<()> {
        // SAFETY: the identifier is there.
        if !self.hardware.is(unsafe { (*self.id).verbs }) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let depth = |depth: usize| u32::try_from(depth).unwrap_or(u32::MAX);
        let mut init = QpInit {
            qp_context: ptr::null_mut(),
            send_cq: self.hardware.cq,
            recv_cq: self.hardware.cq,
            srq: ptr::null_mut(),
            // One more, to see whether the peer is alive.
            max_send_wr: depth(self.options.send_depth + 1),
            max_recv_wr: depth(self.options.recv_depth),
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
            qp_type: abi::QPT_RC,
            sq_sig_all: 0,
        };
        let library = self.hardware.library;
        // SAFETY: domain and queue live as long as `hardware`; the attributes are copied.
        check(unsafe { (library.rdma_create_qp)(self.id, self.hardware.pd, &raw mut init) })?;
        // SAFETY: the identifier is there.
        check(unsafe { (library.rdma_resolve_route)(self.id, milliseconds(patience(&self.options))) })
    }

    /// What this side offers to the peer's application.
    pub(crate) fn offer(&self) -> Agreement {
        if self.options.private_data.len() + Agreement::LEN > REQ_PRIVATE_DATA {
            return Agreement::default();
        }
        let Agreement { extensions, contexts } = self.options.agreement;
        // Those that concern the transport are the NIC's, which knows none.
        let transport = Extensions::SELECTIVE_REPEAT | Extensions::LATE_ACKNOWLEDGEMENT | Extensions::TOKEN;
        Agreement::new(extensions.without(transport), contexts)
    }

    /// Sends the REQ.
    pub(crate) fn request(&mut self, now: Instant) -> io::Result<()> {
        let mut private_data = [0; REQ_PRIVATE_DATA];
        let own = &self.options.private_data;
        private_data[..own.len()].copy_from_slice(own);
        let offer = self.offer();
        // As the user-space transport: an application that offers nothing sends no record.
        let has_record = offer != Agreement::default() && offer.put(&mut private_data).is_ok();
        let has_token = self.options.token.is_some_and(|token| token.put(&mut private_data).is_ok());
        let length = if has_record || has_token { REQ_PRIVATE_DATA } else { own.len() };
        let mut param = ConnParam {
            private_data: private_data.as_ptr().cast(),
            private_data_len: length as u8,
            responder_resources: self.options.responder_resources,
            initiator_depth: self.options.initiator_depth,
            flow_control: 0,
            retry_count: self.options.retry_count.min(MAX_RETRIES),
            rnr_retry_count: self.options.rnr_retry.min(7),
            srq: 0,
            qp_num: 0,
        };
        self.phase = Phase::ReqSent;
        self.deadline = Some(now + patience(&self.options).max(REQ_PATIENCE));
        // SAFETY: the identifier is there; the parameters and the private data are copied.
        check(unsafe { (self.hardware.library.rdma_connect)(self.id, &raw mut param) })
    }

    /// Whether the private data of a request fits.
    pub(crate) fn fits(options: &ConnectOptions) -> bool {
        options.private_data.len() <= REQ_PRIVATE_DATA
    }

    /// Stops the queue pair, so that the peer no longer accesses memory, and sends a DREQ, or a DREP if the peer sent one.
    pub(crate) fn close(&mut self, now: Instant, reason: DisconnectReason) {
        self.phase = Phase::DreqSent;
        self.reason = reason;
        self.deadline = Some(now + patience(&self.options));
        // SAFETY: the identifier is there.
        let _the_deadline_ends_it = unsafe { (self.hardware.library.rdma_disconnect)(self.id) };
    }

    /// Number of the queue pair; 0 if there is none yet.
    pub(crate) fn local_qpn(&self) -> u32 {
        // SAFETY: the identifier and its queue pair are there as long as `self`.
        unsafe { (*self.id).qp.as_ref().map_or(0, |qp| qp.qp_num) }
    }

    pub(crate) fn post_send(&self, request: &mut SendRequest) -> io::Result<()> {
        let mut bad = ptr::null_mut();
        // SAFETY: the queue pair is there as long as `self`; the request and its list are copied. What the list names is registered.
        status(unsafe {
            let qp = (*self.id).qp;
            let Some(made) = qp.as_ref() else { return Err(io::ErrorKind::NotConnected.into()) };
            ((*made.context).ops.post_send)(qp, request, &raw mut bad)
        })
    }

    pub(crate) fn post_recv(&self, request: &mut RecvRequest) -> io::Result<()> {
        let mut bad = ptr::null_mut();
        // SAFETY: as in `post_send`.
        status(unsafe {
            let qp = (*self.id).qp;
            let Some(made) = qp.as_ref() else { return Err(io::ErrorKind::NotConnected.into()) };
            ((*made.context).ops.post_recv)(qp, request, &raw mut bad)
        })
    }

    /// When something is to be done though nothing comes.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let is_idle = self.phase == Phase::Established && !self.is_probing && self.sends == 0;
        let probe = self.options.keepalive.filter(|_| is_idle).map(|after| self.alive_at + after);
        let held = self.not_before.filter(|_| !self.held.is_empty());
        [self.deadline, probe, held].into_iter().flatten().min()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let library = self.hardware.library;
        let _no_event_is_read = self.hardware.managing();
        // SAFETY: the identifier is not used any more: not here, and not by who reads events, which changes queue pairs. Each event was
        // acknowledged, so this does not wait.
        unsafe {
            if !(*self.id).qp.is_null() {
                (library.rdma_destroy_qp)(self.id);
            }
            (library.rdma_destroy_id)(self.id);
        }
    }
}

/// How long connection management may take for one step.
fn patience(options: &ConnectOptions) -> Duration {
    options.cm_timeout.saturating_mul(u32::from(options.cm_retries) + 1)
}

fn milliseconds(time: Duration) -> c_int {
    c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX)
}

/// Code of a time: 4.096 µs times 2 to its power, no shorter (IBTA 9.9.1).
fn timeout_code(time: Duration) -> u8 {
    let longer = |code: &u8| u128::from(4096_u64) << *code >= time.as_nanos();
    (1..31).find(longer).unwrap_or(31)
}

/// librdmacm returns -1 and sets errno.
fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Providers return an errno.
fn status(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result.abs())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_times_round_up() {
        for (time, code) in [(0, 1), (8192, 1), (8193, 2), (500_000_000, 17), (u64::MAX, 31)] {
            assert_eq!(timeout_code(Duration::from_nanos(time)), code, "{time}");
        }
    }
}
