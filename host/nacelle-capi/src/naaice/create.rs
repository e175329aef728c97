// SPDX-License-Identifier: Apache-2.0
//! From the parameters of `naa_create` to a session.

use nacelle::{CallOptions, Role};

use super::sessions::{Lease, NaaSession};
use super::{CALL_WITHIN, NaaParam, spec};
use crate::edge::Failure;
use crate::handle::{Exclusive, registry};
use crate::memory::{self, Buffer};
use crate::session::{self, Session};

/// `MAX_MRS` of `naaice.h`.
const MAX_PARAMETERS: u32 = 32;

/// The elements of an array of parameters.
///
/// # Safety
/// It has `amount` elements, or is null.
pub(super) unsafe fn parameters(array: *const NaaParam, amount: u32, kind: &str) -> Result<Vec<NaaParam>, Failure> {
    if amount > MAX_PARAMETERS {
        return Err(Failure::invalid(format!("{amount} {kind} parameters are more than {MAX_PARAMETERS}")));
    }
    if array.is_null() && amount > 0 {
        return Err(Failure::invalid(format!("the {kind} parameters are NULL")));
    }
    // SAFETY: as this function.
    Ok((0..amount as usize).map(|index| unsafe { array.add(index).read() }).collect())
}

/// One region for each parameter, the inputs first; an output at the address of an input is one region with it.
///
/// # Safety
/// As [`Buffer::new`], for each parameter.
pub(super) unsafe fn buffers(inputs: &[NaaParam], outputs: &[NaaParam]) -> Result<Vec<Buffer>, Failure> {
    let mut regions: Vec<(NaaParam, Role)> = inputs
        .iter()
        .map(|input| (*input, if input.single_send != 0 { Role::InputOnce } else { Role::Input }))
        .collect();
    for (index, output) in outputs.iter().enumerate() {
        let shared = regions[..inputs.len()].iter_mut().find(|(input, _)| input.addr == output.addr);
        let Some((input, role)) = shared else {
            regions.push((*output, Role::Output));
            continue;
        };
        if output.size > input.size {
            return Err(Failure {
                hint: "give both parameters the same size, or other memory".into(),
                ..Failure::invalid(format!(
                    "output {index} has {} bytes, and the input at its address only {}",
                    output.size, input.size
                ))
            });
        }
        *role = match role {
            Role::Input => Role::InOut,
            Role::InputOnce => Role::InOutOnce,
            _ => return Err(Failure::invalid(format!("output {index} has the address of another output"))),
        };
    }
    // SAFETY: as this function.
    let buffer = |(parameter, role): (NaaParam, Role)| unsafe { Buffer::new(role, parameter.addr, parameter.size) };
    Ok(regions.into_iter().map(buffer).collect())
}

/// A variable of the environment, if it is set and not empty.
fn variable(name: &str) -> Result<Option<String>, Failure> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(Failure::invalid(format!("{name} is not UTF-8"))),
    }
}

/// Opens a session with a device of `NAA_SPEC`. Returns its handle.
pub(super) fn session(function: u32, inputs: u32, buffers: &[Buffer]) -> Result<u64, Failure> {
    let regions = memory::regions(buffers)?;
    let value = variable("NAA_SPEC")?.ok_or_else(|| spec::bad("NAA_SPEC is not set, so there is no device to use"))?;
    let entries = spec::parse(&value)?;
    let registry = registry();
    let lease = Lease::take(&registry.naaice_shared, &entries, function)
        .ok_or_else(|| spec::bad(&format!("NAA_SPEC has no device for function {function} that is not in use")))?;
    let entry = lease.entry();
    if entry.inputs != inputs {
        let (address, listed) = (&entry.address, entry.inputs);
        return Err(spec::bad(&format!(
            "NAA_SPEC says that function {function} at {address} has {listed} inputs, the program gives {inputs}"
        )));
    }
    let device = lease.device(variable("NAA_LOCAL_IP")?)?;
    let options = CallOptions { deadline: Some(CALL_WITHIN) };
    let call = device.create_with(session::function(function)?, regions, &options)?;
    let session = Session::new(call, memory::output_bytes(buffers));
    registry.naaice.insert(Exclusive::new(NaaSession { session, user: [0; 3], device, lease }, ()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Index of the memory, size, single send.
    fn parameter((at, size, single_send): (usize, usize, bool)) -> NaaParam {
        NaaParam { addr: std::ptr::without_provenance_mut(0x1000 * at), size, single_send: single_send.into() }
    }

    type Given = (usize, usize, bool);

    fn roles(inputs: &[Given], outputs: &[Given]) -> Result<Vec<(Role, usize)>, String> {
        let read = |given: &[Given]| given.iter().copied().map(parameter).collect::<Vec<_>>();
        // SAFETY: no byte of it is accessed.
        let buffers = unsafe { buffers(&read(inputs), &read(outputs)) }.map_err(|failure| failure.text)?;
        Ok(buffers.iter().map(|buffer| (buffer.role(), buffer.size())).collect())
    }

    #[test]
    fn an_output_at_the_address_of_an_input_is_one_region_with_it() {
        let regions =
            roles(&[(1, 8, false), (2, 9, true), (3, 7, true)], &[(1, 8, false), (4, 6, true), (3, 7, false)]);
        let expected = [(Role::InOut, 8), (Role::InputOnce, 9), (Role::InOutOnce, 7), (Role::Output, 6)];
        assert_eq!(regions.unwrap(), expected);
        assert_eq!(roles(&[(1, 8, false)], &[(1, 4, false)]).unwrap(), [(Role::InOut, 8)], "as the upstream library");
    }

    #[test]
    fn an_output_that_does_not_fit_is_refused() {
        assert!(roles(&[(1, 8, false)], &[(1, 9, false)]).unwrap_err().contains("only 8"));
        assert!(roles(&[(1, 8, false)], &[(1, 8, false), (1, 8, false)]).unwrap_err().contains("another output"));
    }

    #[test]
    fn impossible_parameters_are_refused() {
        // SAFETY: null is allowed.
        unsafe {
            assert!(parameters(std::ptr::null(), 0, "input").unwrap().is_empty());
            assert!(parameters(std::ptr::null(), 1, "input").is_err());
            assert!(parameters(std::ptr::null(), 33, "input").is_err());
        }
    }
}
