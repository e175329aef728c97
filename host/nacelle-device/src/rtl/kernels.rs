// SPDX-License-Identifier: Apache-2.0
//! Kernels of the simulated RTL, by the registers of its sockets (docs/reference/kernels.md).

use nacelle_manage::images::ImageKey;
use nacelle_manage::map::{Chain, device, images, socket};
use nacelle_manage::{ChangeError, Digest, KernelImage, KernelSocket, Refusal};

use super::RtlEngine;
use crate::DeviceError;

/// Values of IMAGE_COMMAND.
const ACTIVATE: u32 = 1;
const ROLL_BACK: u32 = 2;
const CUT: u32 = 3;
/// Words of an image's record.
const RECORD_VERSION: u32 = 2;
const RECORD_FUNCTIONS: u32 = 3;
const RECORD_NAME: u32 = 4;
const RECORD_CODES: u32 = 8;
const RECORD_DIGEST: u32 = 16;
const DIGEST_WORDS: u32 = 8;
/// Characters of a name, and functions of a kernel.
const NAME_WORDS: u32 = 4;
const MAX_FUNCTIONS: u32 = 8;

/// What is known of the images of each socket, which cannot be read while a kernel is being replaced. Only the uploaded ones change.
#[derive(Default)]
pub(super) struct KernelTable {
    sockets: Vec<Option<Vec<KernelImage>>>,
    /// Places for uploaded images, once it was looked whether there are any.
    slots: Option<u32>,
}

/// A word of a record.
type Words<'a> = dyn FnMut(u32) -> Result<u32, DeviceError> + 'a;

fn image(word: &mut Words<'_>, with_digest: bool) -> Result<KernelImage, DeviceError> {
    let version = word(RECORD_VERSION)?;
    let count = word(RECORD_FUNCTIONS)?.min(MAX_FUNCTIONS);
    let mut bytes = |first: u32, words: u32| -> Result<Vec<u8>, DeviceError> {
        let all = (first..first + words).map(&mut *word).collect::<Result<Vec<u32>, _>>()?;
        Ok(all.into_iter().flat_map(u32::to_le_bytes).collect())
    };
    let name: Vec<u8> = bytes(RECORD_NAME, NAME_WORDS)?.into_iter().take_while(|byte| *byte != 0).collect();
    let codes = bytes(RECORD_CODES, count)?;
    let digest = if with_digest { bytes(RECORD_DIGEST, DIGEST_WORDS)?.try_into().ok().map(Digest) } else { None };
    Ok(KernelImage {
        name: String::from_utf8_lossy(&name).into_owned(),
        version: ((version >> 16) as u16, version as u16),
        functions: codes.into_iter().step_by(4).collect(),
        digest,
        uploaded: false,
    })
}

/// The register of a socket that says what word of its only image's record does.
const fn of_socket(word: u32) -> u32 {
    match word {
        RECORD_VERSION => socket::KERNEL_VERSION.offset,
        RECORD_FUNCTIONS => socket::FUNCTIONS.offset,
        RECORD_NAME..RECORD_CODES => socket::NAME.word(0, word - RECORD_NAME),
        _ => socket::FUNCTION_CODE.word(0, word - RECORD_CODES),
    }
}

impl RtlEngine {
    /// Where the registers of a socket are.
    fn page(&mut self, number: u16) -> Result<u32, Refusal> {
        if u32::from(number) >= self.sim.reg_read(device::SOCKETS.offset)? {
            return Err(Refusal::no_socket(number));
        }
        Ok(socket::BASE + u32::from(number) * socket::BLOCK_STRIDE)
    }

    /// Places for images that are uploaded, behind those of the build in each socket that has several.
    fn slots(&mut self) -> Result<u32, DeviceError> {
        if let Some(known) = self.kernels.slots {
            return Ok(known);
        }
        let slots = match Chain::new(&mut self.sim).first(&images::BLOCK)? {
            Some(found) => self.sim.reg_read(images::SLOTS.at(found.address))?,
            None => 0,
        };
        self.kernels.slots = Some(slots);
        Ok(slots)
    }

    /// Sets the key of the images that it takes.
    ///
    /// # Errors
    /// If it takes none.
    pub(super) fn set_image_key(&mut self, key: &ImageKey) -> Result<(), DeviceError> {
        // Not by the chain of blocks: some of them do not answer before the device is enabled.
        let without = |_| DeviceError::Without { what: "places for images of kernels" };
        self.sim.reg_read(images::SLOTS.at(images::BASE)).map_err(without)?;
        (0..).zip(key.words()).try_for_each(|(i, word)| self.sim.reg_write(images::KEY.word(images::BASE, i), word))
    }

    fn images(&mut self, number: u16, page: u32, count: u32, changing: bool) -> Result<Vec<KernelImage>, Refusal> {
        let index = usize::from(number);
        let slots = if count == 1 { 0 } else { self.slots()? };
        let built = count.saturating_sub(slots);
        let mut images = match self.kernels.sockets.get(index) {
            Some(Some(known)) if changing || slots == 0 => return Ok(known.clone()),
            _ if changing => return Err(Refusal::changing(number)),
            Some(Some(known)) => known[..built as usize].to_vec(),
            _ => Vec::new(),
        };
        let sim = &mut self.sim;
        if count == 1 {
            images.push(image(&mut |word| sim.reg_read(page + of_socket(word)), false)?);
        } else {
            for image_number in images.len() as u32..count {
                let mut word = |word: u32| {
                    let select = socket::IMAGE_SELECT_WORD.put(image_number, word);
                    sim.reg_write(socket::IMAGE_SELECT.at(page), select)?;
                    sim.reg_read(socket::IMAGE_RECORD.at(page))
                };
                let mut found = image(&mut word, true)?;
                found.uploaded = image_number >= built;
                // An image that was not verified has no record.
                found.digest = found.digest.filter(|_| !found.name.is_empty());
                images.push(found);
            }
        }
        let known = &mut self.kernels.sockets;
        known.resize(known.len().max(index + 1), None);
        known[index] = Some(images.clone());
        Ok(images)
    }

    pub(super) fn kernel_sockets(&mut self) -> Result<Vec<KernelSocket>, Refusal> {
        let count = self.sim.reg_read(device::SOCKETS.offset)?;
        let mut sockets = Vec::new();
        for number in 0..count as u16 {
            let page = self.page(number)?;
            let what = self.sim.reg_read(socket::IMAGES.at(page))?;
            let state = self.sim.reg_read(socket::IMAGE_STATE.at(page))?;
            let changing = socket::IMAGE_STATE_STATE.of(state) != 0;
            sockets.push(KernelSocket {
                images: self.images(number, page, socket::IMAGES_COUNT.of(what), changing)?,
                active: (socket::IMAGE_STATE_LIVE.of(state) != 0).then_some(socket::IMAGES_ACTIVE.of(what) as u8),
                former: (socket::IMAGES_HAS_FORMER.of(what) != 0).then_some(socket::IMAGES_FORMER.of(what) as u8),
                changing,
                error: match socket::IMAGE_STATE_ERROR.of(state) {
                    0 => None,
                    2 => Some(ChangeError::BadImage),
                    3 => Some(ChangeError::BadDigest),
                    4 => Some(ChangeError::NoFormer),
                    5 => Some(ChangeError::NotLoaded),
                    6 => Some(ChangeError::NoIdentity),
                    _ => Some(ChangeError::Other),
                },
            });
        }
        Ok(sockets)
    }

    /// Begins to put an image into a socket, the former one without a number.
    pub(super) fn begin_change(&mut self, number: u16, image: Option<(u8, Digest)>) -> Result<(), Refusal> {
        let page = self.page(number)?;
        if socket::IMAGES_COUNT.of(self.sim.reg_read(socket::IMAGES.at(page))?) == 1 {
            return Err(Refusal::one_kernel(number));
        }
        if socket::IMAGE_STATE_STATE.of(self.sim.reg_read(socket::IMAGE_STATE.at(page))?) != 0 {
            return Err(Refusal::changing(number));
        }
        let command = socket::IMAGE_COMMAND.at(page);
        let Some((image, digest)) = image else { return Ok(self.sim.reg_write(command, ROLL_BACK)?) };
        for (i, word) in (0..).zip(digest.0.chunks_exact(4)) {
            let word = word.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
            self.sim.reg_write(socket::IMAGE_DIGEST.word(page, i), word)?;
        }
        self.sim.reg_write(socket::IMAGE_SELECT.at(page), image.into())?;
        Ok(self.sim.reg_write(command, ACTIVATE)?)
    }

    /// Cuts off the job that a change waits for.
    pub(super) fn cut_job(&mut self, number: u16) -> Result<(), Refusal> {
        let page = self.page(number)?;
        // An error response says that no change is under way, or that nothing can be changed.
        let _nothing_to_cut = self.sim.reg_write(socket::IMAGE_COMMAND.at(page), CUT);
        Ok(())
    }
}
