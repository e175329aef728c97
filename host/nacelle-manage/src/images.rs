// SPDX-License-Identifier: Apache-2.0
//! Images of kernels as files, and their way into a device (docs/reference/images.md).
//!
//! [`Image`] is what a file says, [`ImageKey`] signs it, [`ImageStore`] is the driver of the device's store over any access to its
//! [`Registers`]. The device verifies an image itself; [`Image::verify`] is the same for the software device.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

use crate::map::{Chain, Register, images};
use crate::{Digest, Registers};

/// First bytes of a file.
const MAGIC: [u8; 4] = *b"NIMG";
/// Version of the format.
const VERSION: u32 = 1;
/// Bytes of the header.
const HEAD: usize = 96;
/// Bytes of the digest, and as many of the signature.
const HASH: usize = 32;
/// Words of a kernel's identity.
const IDENTITY_WORDS: usize = 16;
/// Bytes of a kernel's name.
const NAME: usize = 16;
/// Functions of a kernel at most.
const FUNCTIONS: usize = 8;
/// Words that are written at a time: they fit one packet.
const BLOCK: usize = 64;
/// Values of COMMAND.
const BEGIN: u32 = 1;
const VERIFY: u32 = 2;
/// Values of `STATE.state`.
const VERIFYING: u32 = 2;

/// The key with which images are signed: 32 bytes, of which no output shows any.
#[derive(Clone, PartialEq, Eq)]
pub struct ImageKey([u8; 32]);

impl fmt::Debug for ImageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ImageKey")
    }
}

impl FromStr for ImageKey {
    type Err = String;

    /// 64 hexadecimal digits, with white space around.
    fn from_str(text: &str) -> Result<Self, String> {
        let Digest(bytes) = text
            .trim()
            .parse()
            .map_err(|_| "a key of images is 64 hexadecimal digits, not all of them 0".to_owned())?;
        Self::new(bytes).ok_or_else(|| "a key of zeros is none".to_owned())
    }
}

impl ImageKey {
    /// From its bytes. Zeros are no key: a device without one has them.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Option<Self> {
        (bytes != [0; 32]).then_some(Self(bytes))
    }

    /// Its words, as they are written to KEY.
    #[must_use]
    pub fn words(&self) -> [u32; 8] {
        std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|k| self.0[4 * i + k])))
    }

    fn mac(&self, digest: Digest) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new(&KeyBlock::from_key(self.0));
        mac.update(&digest.0);
        mac
    }

    /// The signature of an image with this digest.
    #[must_use]
    pub fn sign(&self, digest: Digest) -> [u8; 32] {
        self.mac(digest).finalize().into_bytes().into()
    }
}

/// The block of a key: it, and zeros.
struct KeyBlock;

impl KeyBlock {
    fn from_key(key: [u8; 32]) -> hmac::digest::Key<Hmac<Sha256>> {
        let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
        block[..key.len()].copy_from_slice(&key);
        block
    }
}

/// What a kernel says of itself (`kernel_identity_t`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelIdentity {
    /// Its name: 1 to 16 bytes of ASCII.
    pub name: String,
    /// Its version: major, minor.
    pub version: (u16, u16),
    /// The codes of its functions, ascending, at most 8.
    pub functions: Vec<u8>,
    /// Type and version of the block of its registers, if they are described.
    pub registers: (u32, u32),
}

impl KernelIdentity {
    fn words(&self) -> [u32; IDENTITY_WORDS] {
        let mut words = [0; IDENTITY_WORDS];
        (words[0], words[1]) = self.registers;
        words[2] = u32::from(self.version.0) << 16 | u32::from(self.version.1);
        words[3] = self.functions.len() as u32;
        let mut name = [0; NAME];
        name.iter_mut().zip(self.name.bytes()).for_each(|(to, from)| *to = from);
        for (word, bytes) in words[4..8].iter_mut().zip(name.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        for (word, code) in words[8..].iter_mut().zip(&self.functions) {
            *word = u32::from(*code);
        }
        words
    }

    fn from_words(words: [u32; IDENTITY_WORDS]) -> Self {
        let name: Vec<u8> =
            words[4..8].iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
        let count = (words[3] as usize).min(FUNCTIONS);
        Self {
            name: String::from_utf8_lossy(&name).into_owned(),
            version: ((words[2] >> 16) as u16, words[2] as u16),
            functions: words[8..8 + count].iter().map(|code| *code as u8).collect(),
            registers: (words[0], words[1]),
        }
    }
}

/// An image of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The digest of the device's build that it fits.
    pub build: u64,
    /// The socket that it fits.
    pub socket: u32,
    /// The kernel in it.
    pub kernel: KernelIdentity,
    /// Its bitstream. In a file it ends with zeros, to whole words.
    pub bitstream: Vec<u8>,
}

impl Image {
    /// The bitstream that stands for a kernel which a simulated device was built with.
    #[must_use]
    pub fn simulated(name: &str) -> Vec<u8> {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(NAME, 0);
        bytes
    }

    /// What its digest is of.
    fn head_and_bitstream(&self) -> Vec<u8> {
        let length = self.bitstream.len().next_multiple_of(4);
        let mut bytes = Vec::with_capacity(HEAD + length + 2 * HASH);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.build.to_le_bytes());
        bytes.extend(self.socket.to_le_bytes());
        bytes.extend((length as u32).to_le_bytes());
        bytes.extend(self.kernel.words().iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(HEAD, 0);
        bytes.extend(&self.bitstream);
        bytes.resize(HEAD + length, 0);
        bytes
    }

    /// By which it is activated.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(Sha256::digest(self.head_and_bitstream()).into())
    }

    /// The file of it, signed.
    #[must_use]
    pub fn to_file(&self, key: &ImageKey) -> Vec<u8> {
        let mut bytes = self.head_and_bitstream();
        let digest = Digest(Sha256::digest(&bytes).into());
        bytes.extend(digest.0);
        bytes.extend(key.sign(digest));
        bytes
    }

    /// What a file says, without its signature; with its digest.
    ///
    /// # Errors
    /// If it is no such file, or not whole.
    pub fn parse(file: &[u8]) -> Result<(Self, Digest), ImageError> {
        let word = |i: usize| {
            file.get(4 * i..4 * i + 4)
                .map(|bytes| u32::from_le_bytes(std::array::from_fn(|k| bytes[k])))
                .unwrap_or_default()
        };
        if file.len() <= HEAD + 2 * HASH || !file.len().is_multiple_of(4) {
            return Err(ImageError::BadLength);
        }
        if file[..4] != MAGIC || word(1) != VERSION || word(22) != 0 || word(23) != 0 {
            return Err(ImageError::BadHeader);
        }
        let end = file.len() - 2 * HASH;
        if word(5) as usize != end - HEAD {
            return Err(ImageError::BadLength);
        }
        let digest = Digest(Sha256::digest(&file[..end]).into());
        if file[end..end + HASH] != digest.0 {
            return Err(ImageError::BadDigest);
        }
        let image = Self {
            build: u64::from(word(3)) << 32 | u64::from(word(2)),
            socket: word(4),
            kernel: KernelIdentity::from_words(std::array::from_fn(|i| word(6 + i))),
            bitstream: file[HEAD..end].to_vec(),
        };
        Ok((image, digest))
    }

    /// What a file says, if it is signed with this key and made for this build.
    ///
    /// # Errors
    /// Why it is not.
    pub fn verify(file: &[u8], key: &ImageKey, build: u64) -> Result<(Self, Digest), ImageError> {
        let (image, digest) = Self::parse(file)?;
        if image.build != build {
            return Err(ImageError::BadBuild);
        }
        // In constant time.
        key.mac(digest).verify_slice(&file[file.len() - HASH..]).map_err(|_| ImageError::BadSignature)?;
        Ok((image, digest))
    }
}

/// Why a device has not taken an image. The kernels that it had are those that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The store has no such place.
    #[error("there is no such place for an image")]
    BadSlot,
    /// It has no key.
    #[error("no key is set, so the device takes no image")]
    NoKey,
    /// A socket holds what is in the place, or loads it.
    #[error("the image in this place is in use")]
    InUse,
    /// Another upload has begun, or none.
    #[error("the upload is no longer under way: another one has taken its place")]
    NoUpload,
    /// Not the file of an image.
    #[error("it is no image: its first bytes are not those of one, or it is of a later version")]
    BadHeader,
    /// Of another build.
    #[error("it was made for another build of the device")]
    BadBuild,
    /// Of no socket that takes images.
    #[error("it is for a socket that does not exist, or holds one kernel only")]
    BadSocket,
    /// Not as long as it says.
    #[error("it is not as long as it says, or longer than the place for it")]
    BadLength,
    /// What came is not what was packed.
    #[error("its digest is not that of what came")]
    BadDigest,
    /// Not signed by who has the key.
    #[error("it is not signed with the key of this device")]
    BadSignature,
    /// Memory failed.
    #[error("the memory of the device has failed")]
    Memory,
    /// Of another kind.
    #[error("the device gives a reason that is not known here")]
    Other,
}

impl ImageError {
    /// All that the registers have a number for, by it.
    const CODES: [Option<Self>; 13] = [
        None,
        Some(Self::Other),
        Some(Self::BadSlot),
        Some(Self::NoKey),
        Some(Self::InUse),
        Some(Self::NoUpload),
        Some(Self::BadHeader),
        Some(Self::BadBuild),
        Some(Self::BadSocket),
        Some(Self::BadLength),
        Some(Self::BadDigest),
        Some(Self::BadSignature),
        Some(Self::Memory),
    ];

    /// By its number in STATE; nothing without an error.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        Self::CODES.get(code as usize).copied().unwrap_or(Some(Self::Other))
    }

    /// Its number in STATE.
    #[must_use]
    pub fn code(self) -> u32 {
        Self::CODES.iter().position(|known| *known == Some(self)).unwrap_or(1) as u32
    }
}

/// Why an upload did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum UploadError<E> {
    /// The registers cannot be accessed.
    #[error(transparent)]
    Access(E),
    /// The device takes no images.
    #[error("the device takes no images")]
    None,
    /// Every place is in use.
    #[error("all {0} places for images are in use")]
    Full(u32),
    /// Longer than a place.
    #[error("the image has {length} bytes, and the device has places of {most}")]
    TooLong {
        /// Bytes of the file.
        length: usize,
        /// Bytes of a place.
        most: u32,
    },
    /// The device has refused it.
    #[error(transparent)]
    Refused(#[from] ImageError),
}

/// A place of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The socket whose image it is.
    pub socket: u32,
    /// Whether it was verified.
    pub verified: bool,
    /// Whether the socket holds or loads it.
    pub used: bool,
}

/// The store of a device, by any way to its registers.
#[derive(Debug)]
pub struct ImageStore<'a, R> {
    registers: &'a mut R,
    slots: u32,
    slot_bytes: u32,
}

impl<'a, R: Registers> ImageStore<'a, R> {
    /// The store of a device.
    ///
    /// # Errors
    /// [`UploadError::None`] if it has none, [`UploadError::Access`] if it does not answer.
    pub fn find(registers: &'a mut R) -> Result<Self, UploadError<R::Error>> {
        let found = Chain::new(registers).first(&images::BLOCK).map_err(UploadError::Access)?;
        if found.is_none() {
            return Err(UploadError::None);
        }
        let mut store = Self { registers, slots: 0, slot_bytes: 0 };
        store.slots = store.read(&images::SLOTS)?;
        store.slot_bytes = store.read(&images::SLOT_BYTES)?;
        Ok(store)
    }

    fn read(&mut self, register: &Register) -> Result<u32, UploadError<R::Error>> {
        self.registers.read(register.at(images::BASE)).map_err(UploadError::Access)
    }

    fn write(&mut self, register: &Register, value: u32) -> Result<(), UploadError<R::Error>> {
        self.registers.write(register.at(images::BASE), value).map_err(UploadError::Access)
    }

    /// How many places it has.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// What is in a place.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn slot(&mut self, slot: u32) -> Result<Slot, UploadError<R::Error>> {
        self.write(&images::SELECT, slot)?;
        let found = self.read(&images::SLOT)?;
        Ok(Slot {
            socket: images::SLOT_SOCKET.of(found),
            verified: images::SLOT_VERIFIED.of(found) != 0,
            used: images::SLOT_USED.of(found) != 0,
        })
    }

    /// A place that nothing needs: an empty one, else one of an image that is not in use.
    ///
    /// # Errors
    /// [`UploadError::Full`].
    pub fn free(&mut self) -> Result<u32, UploadError<R::Error>> {
        let mut found = None;
        for number in 0..self.slots {
            let slot = self.slot(number)?;
            if !slot.used && !slot.verified {
                return Ok(number);
            }
            if !slot.used {
                found = found.or(Some(number));
            }
        }
        found.ok_or(UploadError::Full(self.slots))
    }

    fn state(&mut self) -> Result<(u32, u32), UploadError<R::Error>> {
        let state = self.read(&images::STATE)?;
        match ImageError::from_code(images::STATE_ERROR.of(state)) {
            Some(error) if images::STATE_STATE.of(state) == 0 => Err(error.into()),
            _ => Ok((images::STATE_STATE.of(state), images::STATE_UPLOAD.of(state))),
        }
    }

    /// Writes a file into a place, and has the device verify it. `told` hears how many bytes have gone. [`ImageStore::verdict`] is the end.
    ///
    /// # Errors
    /// If it does not fit, the device refuses it, or another upload takes its place.
    pub fn upload(&mut self, slot: u32, file: &[u8], mut told: impl FnMut(usize)) -> Result<(), UploadError<R::Error>> {
        if file.len() > self.slot_bytes as usize {
            return Err(UploadError::TooLong { length: file.len(), most: self.slot_bytes });
        }
        self.write(&images::SELECT, slot)?;
        self.write(&images::COMMAND, BEGIN)?;
        // The number of an upload tells it from others: also a refusal leaves the one that is under way.
        let state = self.read(&images::STATE)?;
        if let Some(error) = ImageError::from_code(images::STATE_ERROR.of(state)) {
            return Err(error.into());
        }
        let number = images::STATE_UPLOAD.of(state);
        let words: Vec<u32> =
            file.chunks(4).map(|bytes| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))).collect();
        for (block, words) in words.chunks(BLOCK).enumerate() {
            let place = images::PLACE_WORD.put(images::PLACE_UPLOAD.put(0, number), (block * BLOCK) as u32);
            let mut writes = vec![(images::PLACE.at(images::BASE), place)];
            writes.extend(words.iter().map(|word| (images::DATA.at(images::BASE), *word)));
            if let Err(error) = self.registers.write_all(&writes) {
                // A refused write means that the upload has ended; an access that failed is one.
                let now = self.read(&images::STATE)?;
                let gone = images::STATE_STATE.of(now) != 1 || images::STATE_UPLOAD.of(now) != number;
                return Err(if gone { ImageError::NoUpload.into() } else { UploadError::Access(error) });
            }
            told((block + 1) * BLOCK * 4);
        }
        if self.state()? != (1, number) {
            return Err(ImageError::NoUpload.into());
        }
        self.write(&images::COMMAND, VERIFY)
    }

    /// Whether the device has verified what came: nothing while it is at it.
    ///
    /// # Errors
    /// Why it has refused it.
    pub fn verdict(&mut self) -> Result<Option<()>, UploadError<R::Error>> {
        Ok((self.state()?.0 != VERIFYING).then_some(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn image() -> Image {
        Image {
            build: 0x1122_3344_5566_7788,
            socket: 1,
            kernel: KernelIdentity {
                name: "increment".into(),
                version: (1, 2),
                functions: vec![1, 3],
                registers: (0, 0),
            },
            bitstream: Image::simulated("increment"),
        }
    }

    fn key(byte: u8) -> ImageKey {
        ImageKey::new([byte; 32]).unwrap()
    }

    /// Made by `nacelle_tb.image` of the device's tests, whose hashes are Python's.
    #[test]
    fn a_file_is_what_the_device_takes() {
        let file = image().to_file(&key(7));
        assert_eq!(file.len(), HEAD + 16 + 64);
        assert_eq!(&file[..24], b"NIMG\x01\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11\x01\0\0\0\x10\0\0\0");
        assert_eq!(image().digest().to_string(), "f40490700dbdd9e473df785a0817d72ce193d7c12ee0335a1974b565fef0e44c");
        let hex: String = file[file.len() - 32..].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "a6d57d224df7bb0cfe05e22924ad28badf805180302d6c22bcfe215d65634f65");
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let (key, file) = (key(7), image().to_file(&key(7)));
        assert_eq!(Image::verify(&file, &key, image().build), Ok((image(), image().digest())));
        for bit in 0..8 * file.len() {
            let mut wrong = file.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(Image::verify(&wrong, &key, image().build).is_err(), "bit {bit}");
        }
        for length in 0..file.len() {
            assert!(Image::verify(&file[..length], &key, image().build).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn reasons_have_numbers_and_keys_are_secrets() {
        for code in 1..13 {
            let error = ImageError::from_code(code).unwrap();
            assert_eq!(error.code(), code);
        }
        assert_eq!((ImageError::from_code(0), ImageError::from_code(99)), (None, Some(ImageError::Other)));
        let file = image().to_file(&key(7));
        assert_eq!(Image::verify(&file, &key(8), image().build), Err(ImageError::BadSignature));
        assert_eq!(Image::verify(&file, &key(7), 1), Err(ImageError::BadBuild));
        assert_eq!(format!("{:?}", key(0x42)), "ImageKey");
        assert!("00".repeat(32).parse::<ImageKey>().is_err() && "0".parse::<ImageKey>().is_err());
        assert_eq!("07".repeat(32).parse::<ImageKey>().unwrap(), key(7));
    }

    proptest! {
        #[test]
        fn what_is_packed_is_found_again(bitstream in prop::collection::vec(any::<u8>(), 1..300), socket in 0u32..16) {
            let whole = Image { bitstream, socket, ..image() };
            let (found, digest) = Image::verify(&whole.to_file(&key(1)), &key(1), whole.build).unwrap();
            prop_assert_eq!(digest, whole.digest());
            prop_assert_eq!((found.socket, &found.kernel), (socket, &whole.kernel));
            prop_assert_eq!(&found.bitstream[..whole.bitstream.len()], &whole.bitstream[..]);
        }

        #[test]
        fn no_bytes_are_an_image_by_chance(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Image::parse(&bytes).is_err());
        }
    }
}
