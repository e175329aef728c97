// SPDX-License-Identifier: Apache-2.0
//! What libibverbs and librdmacm lay out in memory, as far as it is read or written here.
//!
//! Structures that the libraries allocate have their first fields only. The test at the end compares sizes, offsets and constants with
//! rdma-core's headers, where these are installed.

use core::ffi::{c_char, c_int, c_uint, c_void};

/// A function that this crate does not call.
type Unused = *const c_void;

/// `struct ibv_context_ops`: the provider's functions.
#[repr(C)]
pub(crate) struct ContextOps {
    before_poll: [Unused; 11],
    pub(crate) poll_cq: unsafe extern "C" fn(*mut Cq, c_int, *mut WorkCompletion) -> c_int,
    pub(crate) req_notify_cq: unsafe extern "C" fn(*mut Cq, c_int) -> c_int,
    between: [Unused; 12],
    pub(crate) post_send: unsafe extern "C" fn(*mut Qp, *mut SendRequest, *mut *mut SendRequest) -> c_int,
    pub(crate) post_recv: unsafe extern "C" fn(*mut Qp, *mut RecvRequest, *mut *mut RecvRequest) -> c_int,
    after: [Unused; 5],
}

/// `struct ibv_context`: an open device.
#[repr(C)]
pub(crate) struct Context {
    pub(crate) device: *mut c_void,
    pub(crate) ops: ContextOps,
}

/// `struct ibv_pd`.
#[repr(C)]
pub(crate) struct Pd {
    context: *mut Context,
}

/// `struct ibv_comp_channel`.
#[repr(C)]
pub(crate) struct CompChannel {
    context: *mut Context,
    pub(crate) fd: c_int,
}

/// `struct ibv_cq`.
#[repr(C)]
pub(crate) struct Cq {
    pub(crate) context: *mut Context,
}

/// `struct ibv_qp`.
#[repr(C)]
pub(crate) struct Qp {
    pub(crate) context: *mut Context,
    qp_context: *mut c_void,
    pd: *mut Pd,
    send_cq: *mut Cq,
    recv_cq: *mut Cq,
    srq: *mut c_void,
    handle: u32,
    pub(crate) qp_num: u32,
}

/// `struct ibv_mr`.
#[repr(C)]
pub(crate) struct Mr {
    context: *mut Context,
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    handle: u32,
    pub(crate) lkey: u32,
    pub(crate) rkey: u32,
}

/// `struct ibv_sge`.
#[repr(C)]
pub(crate) struct Sge {
    pub(crate) addr: u64,
    pub(crate) length: u32,
    pub(crate) lkey: u32,
}

/// `struct ibv_send_wr`, with the part of its union that RDMA has.
#[repr(C)]
pub(crate) struct SendRequest {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut SendRequest,
    pub(crate) sg_list: *mut Sge,
    pub(crate) num_sge: c_int,
    pub(crate) opcode: c_uint,
    pub(crate) send_flags: c_uint,
    /// In network byte order.
    pub(crate) imm_data: u32,
    pub(crate) remote_addr: u64,
    pub(crate) rkey: u32,
    pub(crate) rest: [u64; 9],
}

/// `struct ibv_recv_wr`.
#[repr(C)]
pub(crate) struct RecvRequest {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut RecvRequest,
    pub(crate) sg_list: *mut Sge,
    pub(crate) num_sge: c_int,
}

/// `struct ibv_wc`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkCompletion {
    pub(crate) wr_id: u64,
    pub(crate) status: c_uint,
    pub(crate) opcode: c_uint,
    vendor_err: u32,
    pub(crate) byte_len: u32,
    /// In network byte order.
    pub(crate) imm_data: u32,
    qp_num: u32,
    src_qp: u32,
    pub(crate) wc_flags: c_uint,
    pkey_index: u16,
    slid: u16,
    sl: u8,
    dlid_path_bits: u8,
}

/// `struct ibv_qp_init_attr`, with its `struct ibv_qp_cap`.
#[repr(C)]
pub(crate) struct QpInit {
    pub(crate) qp_context: *mut c_void,
    pub(crate) send_cq: *mut Cq,
    pub(crate) recv_cq: *mut Cq,
    pub(crate) srq: *mut c_void,
    pub(crate) max_send_wr: u32,
    pub(crate) max_recv_wr: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_recv_sge: u32,
    pub(crate) max_inline_data: u32,
    pub(crate) qp_type: c_uint,
    pub(crate) sq_sig_all: c_int,
}

/// `struct ibv_device_attr`.
#[repr(C, align(8))]
pub(crate) struct DeviceAttr {
    before: [u8; 112],
    pub(crate) max_qp_wr: c_int,
    device_cap_flags: c_uint,
    sges_and_cqs: [c_int; 3],
    pub(crate) max_cqe: c_int,
    mrs_and_pds: [c_int; 2],
    pub(crate) max_qp_rd_atom: c_int,
    others: [c_int; 2],
    pub(crate) max_qp_init_rd_atom: c_int,
    /// Room for the rest.
    after: [u8; 128],
}

/// What `ibv_query_port` writes: the first fields of `struct ibv_port_attr`.
#[repr(C, align(8))]
pub(crate) struct PortAttr {
    pub(crate) state: c_uint,
    max_mtu: c_uint,
    pub(crate) active_mtu: c_uint,
    /// Room for the rest.
    after: [u8; 64],
}

/// `struct rdma_event_channel`.
#[repr(C)]
pub(crate) struct EventChannel {
    pub(crate) fd: c_int,
}

/// `struct rdma_cm_id`.
#[repr(C)]
pub(crate) struct CmId {
    pub(crate) verbs: *mut Context,
    channel: *mut EventChannel,
    pub(crate) context: *mut c_void,
    pub(crate) qp: *mut Qp,
    route: [u64; 39],
    ps: c_uint,
    pub(crate) port_num: u8,
}

/// `struct rdma_conn_param`.
#[repr(C)]
pub(crate) struct ConnParam {
    pub(crate) private_data: *const c_void,
    pub(crate) private_data_len: u8,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) flow_control: u8,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
    pub(crate) srq: u8,
    pub(crate) qp_num: u32,
}

/// `struct rdma_cm_event`, with the part of its union that connections have.
#[repr(C)]
pub(crate) struct CmEvent {
    pub(crate) id: *mut CmId,
    listen_id: *mut CmId,
    pub(crate) event: c_uint,
    pub(crate) status: c_int,
    pub(crate) param: ConnParam,
}

pub(crate) const ACCESS_LOCAL_WRITE: c_int = 1;
pub(crate) const ACCESS_REMOTE_WRITE: c_int = 2;
pub(crate) const ACCESS_REMOTE_READ: c_int = 4;

pub(crate) const SEND_FENCE: c_uint = 1;
pub(crate) const SEND_SIGNALED: c_uint = 2;
pub(crate) const SEND_SOLICITED: c_uint = 4;

pub(crate) const WR_WRITE: c_uint = 0;
pub(crate) const WR_WRITE_IMM: c_uint = 1;
pub(crate) const WR_SEND: c_uint = 2;
pub(crate) const WR_SEND_IMM: c_uint = 3;
pub(crate) const WR_READ: c_uint = 4;

pub(crate) const WC_RECV_WRITE: c_uint = 129;
pub(crate) const WC_WITH_IMM: c_uint = 2;

pub(crate) const QPT_RC: c_uint = 2;
pub(crate) const PORT_ACTIVE: c_uint = 4;
pub(crate) const PS_TCP: c_uint = 0x106;
pub(crate) const OPTION_ID: c_int = 0;
pub(crate) const OPTION_ID_ACK_TIMEOUT: c_int = 3;

pub(crate) const CM_ADDR_RESOLVED: c_uint = 0;
pub(crate) const CM_ADDR_ERROR: c_uint = 1;
pub(crate) const CM_ROUTE_RESOLVED: c_uint = 2;
pub(crate) const CM_ROUTE_ERROR: c_uint = 3;
pub(crate) const CM_CONNECT_ERROR: c_uint = 6;
pub(crate) const CM_UNREACHABLE: c_uint = 7;
pub(crate) const CM_REJECTED: c_uint = 8;
pub(crate) const CM_ESTABLISHED: c_uint = 9;
pub(crate) const CM_DISCONNECTED: c_uint = 10;
pub(crate) const CM_DEVICE_REMOVAL: c_uint = 11;
pub(crate) const CM_TIMEWAIT_EXIT: c_uint = 15;

/// A name that `ibv_get_device_name` returns.
pub(crate) type Name = *const c_char;

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::{offset_of, size_of};
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// Folders that may have rdma-core's headers: the system's, and those of the guest for interoperability tests.
    fn headers() -> Option<PathBuf> {
        let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/interop/sysroot/usr/include");
        [PathBuf::from("/usr/include"), guest].into_iter().find(|folder| folder.join("rdma/rdma_cma.h").exists())
    }

    /// What is said here, and the same in C.
    macro_rules! facts {
        ($($rust:expr => $c:literal),* $(,)?) => { vec![$(($rust as u64, $c)),*] };
    }

    fn facts() -> Vec<(u64, &'static str)> {
        facts![
            offset_of!(Context, ops) => "offsetof(struct ibv_context, ops)",
            size_of::<ContextOps>() => "sizeof(struct ibv_context_ops)",
            offset_of!(ContextOps, poll_cq) => "offsetof(struct ibv_context_ops, poll_cq)",
            offset_of!(ContextOps, req_notify_cq) => "offsetof(struct ibv_context_ops, req_notify_cq)",
            offset_of!(ContextOps, post_send) => "offsetof(struct ibv_context_ops, post_send)",
            offset_of!(ContextOps, post_recv) => "offsetof(struct ibv_context_ops, post_recv)",
            offset_of!(CompChannel, fd) => "offsetof(struct ibv_comp_channel, fd)",
            offset_of!(Cq, context) => "offsetof(struct ibv_cq, context)",
            offset_of!(Qp, context) => "offsetof(struct ibv_qp, context)",
            offset_of!(Qp, qp_num) => "offsetof(struct ibv_qp, qp_num)",
            offset_of!(Mr, lkey) => "offsetof(struct ibv_mr, lkey)",
            offset_of!(Mr, rkey) => "offsetof(struct ibv_mr, rkey)",
            size_of::<Sge>() => "sizeof(struct ibv_sge)",
            offset_of!(Sge, length) => "offsetof(struct ibv_sge, length)",
            offset_of!(Sge, lkey) => "offsetof(struct ibv_sge, lkey)",
            size_of::<SendRequest>() => "sizeof(struct ibv_send_wr)",
            offset_of!(SendRequest, sg_list) => "offsetof(struct ibv_send_wr, sg_list)",
            offset_of!(SendRequest, opcode) => "offsetof(struct ibv_send_wr, opcode)",
            offset_of!(SendRequest, send_flags) => "offsetof(struct ibv_send_wr, send_flags)",
            offset_of!(SendRequest, imm_data) => "offsetof(struct ibv_send_wr, imm_data)",
            offset_of!(SendRequest, remote_addr) => "offsetof(struct ibv_send_wr, wr.rdma.remote_addr)",
            offset_of!(SendRequest, rkey) => "offsetof(struct ibv_send_wr, wr.rdma.rkey)",
            size_of::<RecvRequest>() => "sizeof(struct ibv_recv_wr)",
            offset_of!(RecvRequest, num_sge) => "offsetof(struct ibv_recv_wr, num_sge)",
            size_of::<WorkCompletion>() => "sizeof(struct ibv_wc)",
            offset_of!(WorkCompletion, opcode) => "offsetof(struct ibv_wc, opcode)",
            offset_of!(WorkCompletion, byte_len) => "offsetof(struct ibv_wc, byte_len)",
            offset_of!(WorkCompletion, imm_data) => "offsetof(struct ibv_wc, imm_data)",
            offset_of!(WorkCompletion, wc_flags) => "offsetof(struct ibv_wc, wc_flags)",
            size_of::<QpInit>() => "sizeof(struct ibv_qp_init_attr)",
            offset_of!(QpInit, max_send_wr) => "offsetof(struct ibv_qp_init_attr, cap.max_send_wr)",
            offset_of!(QpInit, max_recv_sge) => "offsetof(struct ibv_qp_init_attr, cap.max_recv_sge)",
            offset_of!(QpInit, qp_type) => "offsetof(struct ibv_qp_init_attr, qp_type)",
            offset_of!(QpInit, sq_sig_all) => "offsetof(struct ibv_qp_init_attr, sq_sig_all)",
            offset_of!(DeviceAttr, max_qp_wr) => "offsetof(struct ibv_device_attr, max_qp_wr)",
            offset_of!(DeviceAttr, max_cqe) => "offsetof(struct ibv_device_attr, max_cqe)",
            offset_of!(DeviceAttr, max_qp_rd_atom) => "offsetof(struct ibv_device_attr, max_qp_rd_atom)",
            offset_of!(DeviceAttr, max_qp_init_rd_atom) => "offsetof(struct ibv_device_attr, max_qp_init_rd_atom)",
            (size_of::<DeviceAttr>() >= 232) => "(sizeof(struct ibv_device_attr) <= 232)",
            offset_of!(PortAttr, active_mtu) => "offsetof(struct ibv_port_attr, active_mtu)",
            (size_of::<PortAttr>() >= 52) => "(sizeof(struct ibv_port_attr) <= 52)",
            offset_of!(EventChannel, fd) => "offsetof(struct rdma_event_channel, fd)",
            offset_of!(CmId, context) => "offsetof(struct rdma_cm_id, context)",
            offset_of!(CmId, qp) => "offsetof(struct rdma_cm_id, qp)",
            offset_of!(CmId, port_num) => "offsetof(struct rdma_cm_id, port_num)",
            size_of::<ConnParam>() => "sizeof(struct rdma_conn_param)",
            offset_of!(ConnParam, retry_count) => "offsetof(struct rdma_conn_param, retry_count)",
            offset_of!(ConnParam, qp_num) => "offsetof(struct rdma_conn_param, qp_num)",
            offset_of!(CmEvent, event) => "offsetof(struct rdma_cm_event, event)",
            offset_of!(CmEvent, status) => "offsetof(struct rdma_cm_event, status)",
            offset_of!(CmEvent, param) => "offsetof(struct rdma_cm_event, param)",
            ACCESS_LOCAL_WRITE => "IBV_ACCESS_LOCAL_WRITE",
            ACCESS_REMOTE_WRITE => "IBV_ACCESS_REMOTE_WRITE",
            ACCESS_REMOTE_READ => "IBV_ACCESS_REMOTE_READ",
            SEND_FENCE => "IBV_SEND_FENCE",
            SEND_SIGNALED => "IBV_SEND_SIGNALED",
            SEND_SOLICITED => "IBV_SEND_SOLICITED",
            WR_WRITE => "IBV_WR_RDMA_WRITE",
            WR_WRITE_IMM => "IBV_WR_RDMA_WRITE_WITH_IMM",
            WR_SEND => "IBV_WR_SEND",
            WR_SEND_IMM => "IBV_WR_SEND_WITH_IMM",
            WR_READ => "IBV_WR_RDMA_READ",
            WC_RECV_WRITE => "IBV_WC_RECV_RDMA_WITH_IMM",
            WC_WITH_IMM => "IBV_WC_WITH_IMM",
            QPT_RC => "IBV_QPT_RC",
            PORT_ACTIVE => "IBV_PORT_ACTIVE",
            PS_TCP => "RDMA_PS_TCP",
            OPTION_ID => "RDMA_OPTION_ID",
            OPTION_ID_ACK_TIMEOUT => "RDMA_OPTION_ID_ACK_TIMEOUT",
            CM_ADDR_RESOLVED => "RDMA_CM_EVENT_ADDR_RESOLVED",
            CM_ADDR_ERROR => "RDMA_CM_EVENT_ADDR_ERROR",
            CM_ROUTE_RESOLVED => "RDMA_CM_EVENT_ROUTE_RESOLVED",
            CM_ROUTE_ERROR => "RDMA_CM_EVENT_ROUTE_ERROR",
            CM_CONNECT_ERROR => "RDMA_CM_EVENT_CONNECT_ERROR",
            CM_UNREACHABLE => "RDMA_CM_EVENT_UNREACHABLE",
            CM_REJECTED => "RDMA_CM_EVENT_REJECTED",
            CM_ESTABLISHED => "RDMA_CM_EVENT_ESTABLISHED",
            CM_DISCONNECTED => "RDMA_CM_EVENT_DISCONNECTED",
            CM_DEVICE_REMOVAL => "RDMA_CM_EVENT_DEVICE_REMOVAL",
            CM_TIMEWAIT_EXIT => "RDMA_CM_EVENT_TIMEWAIT_EXIT",
        ]
    }

    #[test]
    fn layouts_and_constants_are_those_of_the_headers() {
        let Some(headers) = headers() else {
            eprintln!("not compared: no rdma/rdma_cma.h (Debian: librdmacm-dev, libibverbs-dev)");
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("facts.c");
        let facts = facts();
        let lines: String =
            facts.iter().map(|(_, c)| format!("    printf(\"%llu\\n\", (unsigned long long)({c}));\n")).collect();
        let includes =
            "#include <stddef.h>\n#include <stdio.h>\n#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n";
        std::fs::write(&source, format!("{includes}int main(void)\n{{\n{lines}    return 0;\n}}\n")).unwrap();
        let program = folder.path().join("facts");
        let mut compiler = Command::new("cc");
        let built = compiler.arg("-idirafter").arg(&headers).arg(&source).arg("-o").arg(&program).output();
        let built = match built {
            Ok(built) => built,
            Err(error) => return eprintln!("not compared: no C compiler ({error})"),
        };
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let said = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
        let said: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(said.len(), facts.len());
        for ((here, c), there) in facts.iter().zip(said) {
            assert_eq!(*here, there, "{c}");
        }
    }
}
