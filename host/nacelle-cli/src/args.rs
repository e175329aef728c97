// SPDX-License-Identifier: Apache-2.0
//! The command line.

mod copy;
mod filter;
mod guest_time;
mod inspect;
mod parse;
mod trace;
mod way;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use nacelle::FunctionCode;
use nacelle_device::MemoryFaults;
use nacelle_link::{Impairments, InterfaceName, WireDir};
use nacelle_manage::{AddressMode, Digest, Ipv6Mode, map};
use nacelle_wire::MacAddr;
use nacelle_wire::admission::Token;

use crate::failure::Failure;
use crate::regions::RegionArgs;
pub(crate) use copy::{CopyArgs, Place};
pub(crate) use filter::{Added, Deleted, FilterCommand};
pub(crate) use guest_time::GuestTimeArgs;
pub(crate) use inspect::{BenchArgs, DescribeArgs, DevicesArgs, DoctorArgs, ExplainArgs, ExportArgs, TopArgs};
use parse::{
    parse_block, parse_build, parse_cidr, parse_function, parse_image, parse_interval, parse_ipv6, parse_key,
    parse_line_rate, parse_mac, parse_network, parse_number, parse_percent, parse_seconds, parse_token_file,
    parse_word,
};
pub(crate) use trace::{DirectionArg, TraceArgs, TriggerArg};
pub(crate) use way::{LinkArgs, WayArgs};

/// Call accelerators over the network, and run simulated ones.
#[derive(Debug, Parser)]
#[command(name = "nacelle", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Print results as JSON, and errors as one line of JSON on stderr
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The directory of the virtual wire [default: $NACELLE_WIRE, $XDG_RUNTIME_DIR/nacelle, for root /run/nacelle, or
    /// /tmp/nacelle-UID]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) wire: Option<PathBuf>,
    /// Use a wire that belongs to another user, who can then control what this command does there
    #[arg(long, global = true)]
    pub(crate) trust_owner: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a device on the wire until it is stopped
    Device(DeviceArgs),
    /// Run a simulated device whose network card is a guest's, and print the lines that start a guest
    ///
    /// It takes the options of 'nacelle device'. By default its library is build/sim/libnacelle_sim_512_nic.so, here or above, and the
    /// socket of its network card lies beside the wire.
    Nic(NicArgs),
    /// Run Linux guests in device time, each with the network card of one of two simulated devices on a line, until they end
    ///
    /// A guest runs its script, with the files of this machine to read. Its clock is that of the devices, so what it measures of its network is
    /// what the devices do, however long they take to simulate.
    GuestTime(GuestTimeArgs),
    /// Run the wire's switch alone, without a device
    Wire(WireArgs),
    /// Call a function of a device
    #[command(subcommand)]
    Run(RunCommand),
    /// List the devices on the wire
    Ls,
    /// List the devices of the network: those that make themselves known, and those of a list
    Devices(DevicesArgs),
    /// Show what a device tells about itself: its functions, limits and extensions, and the link to it
    Describe(DescribeArgs),
    /// Find out, step by step, why a device cannot be called
    Doctor(DoctorArgs),
    /// Measure a device: latency of calls, WRITE and READ, throughput, set-up
    Bench(BenchArgs),
    /// Watch a device on the wire: what it counts, how fast, and its queue pairs
    Top(TopArgs),
    /// Serve what devices on the wire count to Prometheus, by HTTP
    Export(ExportArgs),
    /// Say what an error code means, why it happens, and what to do
    Explain(ExplainArgs),
    /// Send echo requests to a device: ICMP, or by UDP an RDMA WRITE without payload
    Ping(PingArgs),
    /// Write what passes on the wire, or at a device, to a pcapng file until stopped
    Capture(CaptureArgs),
    /// Let a device record frames at its MAC, in hardware, and show them or write them to a pcapng file
    Trace(TraceArgs),
    /// Show what a device has counted
    Stats {
        /// The device's name or address
        device: String,
    },
    /// Show what has happened to a device, with times: connections, refusals, failures, changes by its operator
    Log(LogArgs),
    /// Show what the board of a device measures of itself: temperatures, voltages, currents, power, fans
    Sensors(RegistersArgs),
    /// Stop a device
    Stop {
        /// The device's name or address
        device: String,
    },
    /// List and reset the queue pairs of a device
    #[command(subcommand)]
    Qp(QpCommand),
    /// List the kernels of a device, and replace one at run time
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// List the memory regions of a device
    #[command(subcommand)]
    Region(RegionCommand),
    /// Say who may connect to a device, with what share, and until when
    #[command(subcommand)]
    Admission(AdmissionCommand),
    /// Show and set the rules by which a device and its network card get received frames
    #[command(subcommand)]
    Filter(FilterCommand),
    /// Show and set the registers of a device by name
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Copy between files and the memory of a device in a slot
    Copy(CopyArgs),
    /// Let a device open a connection to a listener, send, show what comes back, and close
    Connect(ConnectArgs),
    /// Give clients of the IPbus project (uHAL) reliable access to the registers of devices: a ControlHub
    Hub(HubArgs),
    /// Start a simulated device and multiply two matrices on it, with a report
    Demo(DemoArgs),
    /// Print a script by which a shell completes this command's options
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write one for each command
    Man {
        /// Write a page for each command into this directory
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

/// `MEMORY_PER_CALLER` (docs/reference/registers.md) holds KiB: fewer MiB than this.
const CALLER_MEMORY_END: i64 = (map::device::MEMORY_PER_CALLER.mask as i64 + 1) >> 10;
/// `KERNEL_TIMEOUT_MS` holds milliseconds: fewer than this.
const KERNEL_TIME_END: i64 = map::device::KERNEL_TIMEOUT_MS.mask as i64 + 1;

#[derive(Debug, Args)]
pub(crate) struct DeviceArgs {
    /// Run the software device instead of the simulated RTL
    #[arg(long)]
    pub(crate) soft: bool,
    /// Memory of the software device [default: 1024]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) memory: Option<u32>,
    /// Memory that one caller may have, by its address; 0 for no limit [default: 0]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(..CALLER_MEMORY_END))]
    pub(crate) caller_memory: Option<u32>,
    /// Connections of the software device, of all callers together, at most 4096 [default: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) connections: Option<u16>,
    /// Connections that one caller may have, by its address; 0 for no limit [default: 64]
    #[arg(long, value_name = "N")]
    pub(crate) caller_connections: Option<u16>,
    /// Kernels that the software device runs at a time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) workers: Option<u32>,
    /// Time that a kernel has, in ms, at most 16777215; 0 for no limit [default: 60000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(..KERNEL_TIME_END))]
    pub(crate) kernel_time: Option<u32>,
    /// Load a kernel from a shared library; can be given more than once. It runs in the device's process: only what you trust
    #[arg(long, value_name = "FILE")]
    pub(crate) kernel: Vec<PathBuf>,
    /// Load a kernel that can take the place of another one, named before the '=': see 'nacelle kernel'
    #[arg(long, value_name = "KERNEL=FILE", value_parser = parse_image)]
    pub(crate) kernel_image: Vec<(String, PathBuf)>,
    /// Take images of kernels that are signed with the key in this file, 64 hexadecimal digits: see 'nacelle kernel load'
    #[arg(long, value_name = "FILE", conflicts_with = "soft")]
    pub(crate) image_key: Option<PathBuf>,
    /// Serve on a UDP socket at this address of the machine instead of on the wire: callers reach it by the kernel's network.
    /// Without an address: the first free one from 127.0.0.2 on
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, requires = "soft", conflicts_with_all = ["ip", "mac", "gateway", "tap"])]
    #[allow(clippy::option_option)] // not given, given without, given with an address
    pub(crate) udp: Option<Option<IpAddr>>,
    /// Share memory with no caller: all use the UDP socket
    #[arg(long, requires = "udp")]
    pub(crate) no_shm: bool,
    /// Make the device known on the network of its address, by multicast DNS: 'nacelle devices' finds it
    #[arg(long, requires = "udp")]
    pub(crate) announce: bool,
    /// Serve as a host of this interface's network instead of on the wire; needs CAP_NET_RAW, and an address by --ip
    #[arg(long, value_name = "INTERFACE", requires = "ip", conflicts_with_all = ["udp", "tap"])]
    pub(crate) packet: Option<InterfaceName>,
    /// The same by an AF_XDP socket, which takes the device's frames before the kernel's network looks at them; needs CAP_NET_RAW,
    /// CAP_NET_ADMIN and CAP_BPF
    #[arg(long, value_name = "INTERFACE", requires = "ip", conflicts_with_all = ["udp", "tap", "packet"])]
    pub(crate) xdp: Option<InterfaceName>,
    /// The simulated RTL's library [default: $NACELLE_SIM_LIBRARY, or build/sim/libnacelle_sim_512.so here or above]
    #[arg(long, value_name = "FILE", conflicts_with = "soft")]
    pub(crate) library: Option<PathBuf>,
    /// Put the device into a slot as well: a PCI Express function that clients of vfio-user find at this socket. The library must be of a
    /// device with [pcie]
    #[arg(long, value_name = "SOCKET", conflicts_with = "soft")]
    pub(crate) slot: Option<PathBuf>,
    /// Put its network card into a slot as well: another PCI Express function, a virtio network device, at a socket of its own. The library
    /// must be of a device with network_card in [pcie]
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["soft", "vhost_user"])]
    pub(crate) slot_net: Option<PathBuf>,
    /// Let a guest have the device's network card: User-mode Linux, QEMU or DPDK finds it at this socket, by vhost-user. The library must be
    /// of a device with network_card in [pcie]
    #[arg(long, value_name = "SOCKET", conflicts_with = "soft")]
    pub(crate) vhost_user: Option<PathBuf>,
    /// Its name on the wire [default: rtl0, soft0 or the next that is free]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Its address and the length of the subnet's prefix [default: 10.77.0.2/16 or the next that is free]
    #[arg(long, value_name = "ADDRESS/BITS", value_parser = parse_cidr)]
    pub(crate) ip: Option<(Ipv4Addr, u8)>,
    /// Where the simulated RTL's address comes from; --ip is the static one [default: static]
    #[arg(long, value_name = "FROM", value_enum, conflicts_with = "soft")]
    pub(crate) address: Option<AddressFrom>,
    /// The simulated RTL's IPv6 addresses: "link-local"; "router", that and one of a router's prefix; or ADDRESS, that and this one [default: none]
    #[arg(long, value_name = "WHICH", value_parser = parse_ipv6, conflicts_with = "soft")]
    pub(crate) ipv6: Option<Ipv6Mode>,
    /// Let the simulated RTL's time pass so many times as fast while it is idle: leases end so much earlier [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "soft", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) idle_speed: Option<u32>,
    /// Its MAC address [default: made from the address]
    #[arg(long, value_parser = parse_mac)]
    pub(crate) mac: Option<MacAddr>,
    /// The router for addresses outside of the subnet
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) gateway: Option<Ipv4Addr>,
    /// Also join the wire to the kernel's network by this TAP device; needs root
    #[arg(long, value_name = "NAME")]
    pub(crate) tap: Option<String>,
    /// Write what the device sends and receives to a pcapng file
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
    /// Write an FST waveform of the simulated RTL
    #[arg(long, value_name = "FILE", conflicts_with = "soft")]
    pub(crate) wave: Option<PathBuf>,
    /// The simulated Ethernet's rate in Mbit/s, or "none" for one beat a cycle [default: 100000]
    #[arg(long, value_name = "MBPS", value_parser = parse_line_rate, conflicts_with = "soft")]
    pub(crate) line_rate: Option<u32>,
    #[command(flatten)]
    pub(crate) memory_faults: MemoryFaultArgs,
    #[command(flatten)]
    pub(crate) impairments: ImpairmentArgs,
}

/// Where a device's address comes from.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum AddressFrom {
    /// It is given to the device
    Static,
    /// From a DHCP server
    Dhcp,
    /// The same; while none answers, the static one
    DhcpOrStatic,
    /// The same; while none answers, one of 169.254/16
    DhcpOrLinkLocal,
}

impl From<AddressFrom> for AddressMode {
    fn from(from: AddressFrom) -> Self {
        match from {
            AddressFrom::Static => Self::Static,
            AddressFrom::Dhcp => Self::Dhcp,
            AddressFrom::DhcpOrStatic => Self::DhcpOrStatic,
            AddressFrom::DhcpOrLinkLocal => Self::DhcpOrLinkLocal,
        }
    }
}

/// What happens to the memory of the simulated RTL.
#[derive(Debug, Args)]
#[command(next_help_heading = "Faults of the simulated RTL's memory")]
pub(crate) struct MemoryFaultArgs {
    /// Flip a bit of a word in this share of the beats that are read
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, conflicts_with = "soft")]
    flip_bit: Option<f64>,
    /// Flip two bits of a word in this share of the beats that are read
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, conflicts_with = "soft")]
    flip_two_bits: Option<f64>,
    /// The memory's controller corrects one bit of a word, and reports two
    #[arg(long, conflicts_with = "soft")]
    controller_ecc: bool,
}

impl MemoryFaultArgs {
    pub(crate) fn faults(&self) -> MemoryFaults {
        let ppm = |share: Option<f64>| (share.unwrap_or_default() * 1e6).round() as u32;
        MemoryFaults {
            one_ppm: ppm(self.flip_bit),
            two_ppm: ppm(self.flip_two_bits),
            controller_ecc: self.controller_ecc.into(),
        }
    }
}

/// What is done to frames, on the way out and on the way in alike.
#[derive(Debug, Args)]
#[command(next_help_heading = "Impairments of the wire, both ways")]
pub(crate) struct ImpairmentArgs {
    /// Lose this share of the frames
    #[arg(long, value_name = "PERCENT", default_value = "0", hide_default_value = true, value_parser = parse_percent)]
    loss: f64,
    /// Send this share of the frames twice
    #[arg(long, value_name = "PERCENT", default_value = "0", hide_default_value = true, value_parser = parse_percent)]
    dup: f64,
    /// Let this share of the frames be overtaken by the next one
    #[arg(long, value_name = "PERCENT", default_value = "0", hide_default_value = true, value_parser = parse_percent)]
    reorder: f64,
    /// Invert one bit in this share of the frames
    #[arg(long, value_name = "PERCENT", default_value = "0", hide_default_value = true, value_parser = parse_percent)]
    corrupt: f64,
    /// Hold every frame up for so long
    #[arg(long, value_name = "MS", default_value = "0", hide_default_value = true)]
    delay: u64,
    /// The seed of all chance
    #[arg(long, value_name = "N", default_value = "1", hide_default_value = true)]
    seed: u64,
}

impl ImpairmentArgs {
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn rules(&self) -> Impairments {
        Impairments {
            loss: self.loss,
            duplicate: self.dup,
            reorder: self.reorder,
            corrupt: self.corrupt,
            delay: Duration::from_millis(self.delay),
            seed: self.seed,
        }
    }
}

#[derive(Debug, Args)]
#[command(mut_arg("tap", |arg| arg.help("Give the card to this machine's kernel instead of a guest: an interface of this name; needs root")))]
pub(crate) struct NicArgs {
    /// The guest's address and the length of the subnet's prefix [default: the device's address, plus 0.0.1.0]
    #[arg(long, value_name = "ADDRESS/BITS", value_parser = parse_cidr)]
    pub(crate) guest_ip: Option<(Ipv4Addr, u8)>,
    /// The kernel of User-mode Linux [default: linux.uml, as it is found]
    #[arg(long, value_name = "FILE")]
    pub(crate) linux: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WireArgs {
    /// Also join the wire to the kernel's network by this TAP device; needs root
    #[arg(long, value_name = "NAME")]
    pub(crate) tap: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct HubArgs {
    /// Where clients connect. Who reaches this address reaches every device that this host reaches
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:10203")]
    pub(crate) listen: SocketAddr,
    /// How long a device may take to answer before a packet counts as lost; after eight in a row the device counts as gone
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, default_value = "0.05")]
    pub(crate) timeout: Duration,
    /// How long a client may be silent before it is disconnected
    #[arg(long, value_name = "SECONDS", value_parser = parse_interval, default_value = "600")]
    pub(crate) silence: Duration,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    /// Multiply two matrices: C = A x B, both int32 or both float32
    Matmul(MatmulArgs),
    /// Add 1 to every byte of a file
    Increment(IncrementArgs),
    /// Call any function, by its code and with regions of your choice
    Function(FunctionArgs),
}

#[derive(Debug, Args)]
pub(crate) struct MatmulArgs {
    /// A, a NumPy file with two dimensions
    pub(crate) a: PathBuf,
    /// B, with as many rows as A has columns
    pub(crate) b: PathBuf,
    /// Where C goes, a NumPy file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Multiply on the CPU too, and compare
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct IncrementArgs {
    /// The file
    pub(crate) input: PathBuf,
    /// Where the result goes
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FunctionArgs {
    /// The function's code, 1 to 127: 'nacelle ls' shows those that a device has
    #[arg(value_parser = parse_function)]
    pub(crate) code: FunctionCode,
    /// Where what comes back goes: one for each --output and --inout, in their order
    #[arg(short = 'o', value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) regions: RegionArgs,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

/// How a device is called.
#[derive(Debug, Args)]
pub(crate) struct CallerArgs {
    /// The device's address, or its name on the wire
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) device: String,
    /// Print what each step took
    #[arg(long)]
    pub(crate) report: bool,
    /// Show no progress of a long call; it is shown on a terminal only
    #[arg(long)]
    pub(crate) no_progress: bool,
    /// Write what is sent and received to a pcapng file
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
    /// Fail when there is no progress for so long
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds)]
    pub(crate) timeout: Duration,
    /// Send again what is not acknowledged after so long; doubles with each try
    #[arg(long, value_name = "MS", default_value = "500", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) ack_timeout: u64,
    #[command(flatten)]
    pub(crate) way: WayArgs,
    #[command(flatten)]
    pub(crate) impairments: ImpairmentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PingArgs {
    /// The device's address, or its name on the wire
    pub(crate) device: String,
    #[command(flatten)]
    pub(crate) link: LinkArgs,
    /// How many requests to send
    #[arg(short, long, default_value = "4", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) count: u16,
    /// Bytes of payload in each; by UDP there are none
    #[arg(short, long, default_value = "56")]
    pub(crate) size: usize,
    /// Time between two requests
    #[arg(short, long, value_name = "SECONDS", default_value = "0.2", value_parser = parse_seconds)]
    pub(crate) interval: Duration,
    /// How long to wait for each answer
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = parse_seconds)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct CaptureArgs {
    /// Capture at this device's port instead of on the whole wire: its name or address
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// The pcapng file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Stop after so long [default: when interrupted]
    #[arg(long, value_parser = parse_seconds)]
    pub(crate) seconds: Option<Duration>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QpCommand {
    /// Show those in use: state, peer, owner, domain, PSNs, and the limit that congestion control sets
    List {
        /// The device's name or address
        device: String,
    },
    /// Show what one has counted since it was set up, or each in use
    Counters {
        /// The device's name or address
        device: String,
        /// The queue pair's number
        qpn: Option<u32>,
    },
    /// Reset one or all; connections are closed with a DREQ
    Reset {
        /// The device's name or address
        device: String,
        /// The queue pair's number
        #[arg(required_unless_present = "all")]
        qpn: Option<u32>,
        /// All of them, the service's callers included
        #[arg(long, conflicts_with = "qpn")]
        all: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Show the kernels that each socket can hold, their functions and digests, and which is there
    List {
        /// The device's name or address
        device: String,
    },
    /// Pack an image of a kernel: the file that 'load' brings into a device
    Pack(PackArgs),
    /// Bring an image into a device, and wait until the device has verified it; 'activate' puts it into its socket
    Load {
        /// The device's name or address, or where IPbus reaches it: ADDRESS:PORT
        device: String,
        /// The image, as 'pack' makes it
        file: PathBuf,
        /// The place for it [default: one whose image is not in use]
        #[arg(long, value_name = "NUMBER")]
        slot: Option<u32>,
        /// A file with the token that the device lets clients write registers by, over the network [default: $NACELLE_TOKEN]
        #[arg(long, value_name = "FILE")]
        token_file: Option<PathBuf>,
        /// Fail when the device has not verified it after so long, or does not answer for so long
        #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds)]
        timeout: Duration,
    },
    /// Put a kernel into a socket in place of the one that is there, and wait until it is there
    Activate {
        /// The device's name or address
        device: String,
        /// The socket's number
        socket: u16,
        /// The image's number, or its kernel's name
        image: String,
        /// Do so only if the image has this SHA-256 digest [default: the one that the device lists]
        #[arg(long, value_name = "HEX")]
        digest: Option<Digest>,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Put the kernel back that a socket has held before
    Rollback {
        /// The device's name or address
        device: String,
        /// The socket's number
        socket: u16,
        #[command(flatten)]
        change: ChangeArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PackArgs {
    /// The description of the kernel: its name, version and functions
    pub(crate) description: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// The build of the device that it fits: the last 16 digits of `build` in what 'nacelle describe --json' shows
    #[arg(long, value_name = "HEX", value_parser = parse_build)]
    pub(crate) build: u64,
    /// The socket that it fits
    #[arg(long, value_name = "NUMBER")]
    pub(crate) socket: u32,
    /// The bitstream [default: that of the simulation for a kernel that the device was built with]
    #[arg(long, value_name = "FILE")]
    pub(crate) bitstream: Option<PathBuf>,
    /// Type and version of the block of the kernel's registers, if they are described: four characters, and two numbers
    #[arg(long, value_name = "TYPE:MAJOR.MINOR", value_parser = parse_block, default_value = "", hide_default_value = true)]
    pub(crate) registers: (u32, u32),
    /// A file with the key that signs it, 64 hexadecimal digits, which nobody else may read
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    /// Cut off the calls that are under way in the socket instead of waiting for their ends: their callers get result 1
    #[arg(long)]
    pub(crate) cut: bool,
    /// Fail when the kernel is not there after so long; the device goes on with it
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RegionCommand {
    /// Show key, rights, for whom, address and length of each
    List {
        /// The device's name or address
        device: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdmissionCommand {
    /// Show the entries: state, where their callers come from, what these may have and have
    List {
        /// The device's name or address
        device: String,
    },
    /// Accept only callers that an entry admits; connections that are there stay
    On {
        /// The device's name or address
        device: String,
    },
    /// Accept everybody
    Off {
        /// The device's name or address
        device: String,
    },
    /// Make an entry, by which callers with a token, or of a network, are admitted; prints its number
    Add(AddArgs),
    /// End an entry: the connections of its callers are closed, who are told, and it admits nobody any more
    Revoke {
        /// The device's name or address
        device: String,
        /// The entry's number
        number: u8,
    },
    /// End an entry, wait until its callers' memory is free, and let its number be used again
    Remove {
        /// The device's name or address
        device: String,
        /// The entry's number
        number: u8,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The device's name or address on the wire [default: the only one there]; another address, or one with a port, is reached over the network by IPbus
    pub(crate) device: Option<String>,
    /// Over the network: log in with the token in this file, 32 hexadecimal digits [default: what $NACELLE_TOKEN has]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Over the network: fail when the device does not answer for so long
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = parse_interval)]
    pub(crate) timeout: Duration,
    /// Go on with what happens from now on, until interrupted
    #[arg(long)]
    pub(crate) follow: bool,
}

/// `MEMORY` of an entry (docs/reference/registers.md) holds KiB: fewer MiB than this.
const ENTRY_MEMORY_END: i64 = (map::admission::MEMORY.mask as i64 + 1) >> 10;

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// The device's name or address
    pub(crate) device: String,
    /// A file with the token that its callers send: 32 hexadecimal digits
    #[arg(long = "token-file", value_name = "FILE", value_parser = parse_token_file)]
    pub(crate) token: Option<Token>,
    /// Make a random token and write it to this file, which must not be there yet
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub(crate) new_token: Option<PathBuf>,
    /// Where its callers come from [default: from anywhere]; without a token it is for callers that send none
    #[arg(long, value_name = "ADDRESS/BITS", value_parser = parse_network)]
    pub(crate) network: Option<(IpAddr, u8)>,
    /// Connections at once; 0 for no limit
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) connections: u16,
    /// Memory of all its connections together; 0 for the device's bound of one address
    #[arg(long, value_name = "MIB", default_value = "0", value_parser = clap::value_parser!(u32).range(..ENTRY_MEMORY_END))]
    pub(crate) memory: u32,
    /// Seconds until it ends [default: when it is revoked]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) time: Option<Duration>,
    /// A number to know it by
    #[arg(long, value_name = "N", default_value = "0", value_parser = parse_word)]
    pub(crate) handle: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the blocks of registers that the device has
    Blocks {
        #[command(flatten)]
        at: RegistersArgs,
    },
    /// Show each register of the device, or of one of its blocks, with its value
    List {
        #[command(flatten)]
        at: RegistersArgs,
        /// The block, as 'nacelle config blocks' names it
        block: Option<String>,
    },
    /// Show registers or fields of them
    Get {
        #[command(flatten)]
        at: RegistersArgs,
        /// As in KEEPALIVE_MS, socket0.JOBS, management.STATUS.error, management.RESULT[3] or 0x40
        #[arg(required = true)]
        name: Vec<String>,
    },
    /// Set a register or a field of it; the other fields keep their values
    Set {
        #[command(flatten)]
        at: RegistersArgs,
        /// The register, as for 'get'
        name: String,
        /// Its value, decimal or 0x…
        #[arg(value_parser = parse_word)]
        value: u32,
    },
}

/// A device with registers.
#[derive(Debug, Args)]
pub(crate) struct RegistersArgs {
    /// The device's name or address on the wire; another address, or one with a port, is reached over the network by IPbus
    pub(crate) device: String,
    /// Over the network: log in with the token in this file, 32 hexadecimal digits [default: what $NACELLE_TOKEN has]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Over the network: fail when the device does not answer for so long
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = parse_interval)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// The device's name or address
    pub(crate) device: String,
    /// The listener's address
    pub(crate) address: IpAddr,
    /// The listener's port, in the TCP port space of the RDMA connection manager
    pub(crate) port: u16,
    /// Private data of the request for the listener, up to 48 bytes
    #[arg(long, value_name = "TEXT")]
    pub(crate) private: Option<String>,
    /// Send a message and wait for one back; can be given more than once
    #[arg(long, value_name = "TEXT")]
    pub(crate) send: Vec<String>,
    /// Write a file into a region of the listener
    #[arg(long, value_name = "FILE", requires = "to", requires = "rkey", conflicts_with = "send", group = "access")]
    pub(crate) write: Option<PathBuf>,
    /// Read so many bytes from a region of the listener
    #[arg(long, value_name = "BYTES", requires = "from", requires = "rkey", conflicts_with = "send", group = "access")]
    pub(crate) read: Option<u32>,
    /// Address to write to, decimal or 0x…
    #[arg(long, value_name = "ADDRESS", requires = "write", value_parser = parse_number)]
    pub(crate) to: Option<u64>,
    /// Address to read from, decimal or 0x…
    #[arg(long, value_name = "ADDRESS", requires = "read", value_parser = parse_number)]
    pub(crate) from: Option<u64>,
    /// Key of the region, decimal or 0x…
    #[arg(long, value_name = "KEY", requires = "access", value_parser = parse_key)]
    pub(crate) rkey: Option<u32>,
    /// Longest payload of a packet: 256, 512, 1024, 2048 or 4096 bytes [default: 1024]
    #[arg(long, value_name = "BYTES")]
    pub(crate) mtu: Option<u16>,
    /// Wait until the listener closes the connection, instead of closing it
    #[arg(long)]
    pub(crate) stay: bool,
    /// Fail when a step takes longer
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Your own matrices instead of random ones: A and B, NumPy files
    #[arg(num_args = 2, value_names = ["A", "B"])]
    pub(crate) files: Vec<PathBuf>,
    /// Rows and columns of the random matrices
    #[arg(long, default_value = "64", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) size: u32,
    /// Type of the random matrices
    #[arg(long, value_enum, default_value = "float32")]
    pub(crate) dtype: DtypeArg,
    /// Seed of the random matrices
    #[arg(long, default_value = "1")]
    pub(crate) seed: u64,
    /// Where matrices, capture and log go [default: build/demo if there is a build, else nacelle-demo]
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Use the software device instead of the simulated RTL
    #[arg(long)]
    pub(crate) soft: bool,
    /// The simulated RTL's library, as for 'nacelle device'
    #[arg(long, value_name = "FILE", conflicts_with = "soft")]
    pub(crate) library: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DtypeArg {
    Int32,
    Float32,
}

impl Cli {
    /// The wire that is meant.
    pub(crate) fn wire(&self) -> Result<WireDir, Failure> {
        let path = self.wire.clone().unwrap_or_else(WireDir::default_path);
        Ok(if self.trust_owner { WireDir::open_trusting_owner(path)? } else { WireDir::open(path)? })
    }
}
