//! Lists and vectors in a ClientHello (RFC 8446 §3.4).

use std::ops::Range;

use super::{HelloError, KeyShare};
use crate::Group;

/// Maximum number of entries in one list. Real clients stay under 40.
pub(super) const MAX_ITEMS: usize = 256;

/// A reader of a range of the message. Positions count from the start of the message.
pub(super) struct Cursor<'a> {
    message: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a reader of `range`, which must lie within `message`.
    pub(super) fn new(message: &'a [u8], range: Range<usize>) -> Self {
        Self {
            message,
            at: range.start,
            end: range.end,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.at..self.end
    }

    pub(super) fn finish(&self, what: &'static str) -> Result<(), HelloError> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(HelloError::Malformed(what))
        }
    }

    pub(super) fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], HelloError> {
        let next = self.at.checked_add(len).filter(|next| *next <= self.end);
        let taken = next.and_then(|next| self.message.get(self.at..next));
        let taken = taken.ok_or(HelloError::Malformed(what))?;
        self.at += len;
        Ok(taken)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, HelloError> {
        match self.take(2, what)? {
            &[high, low] => Ok(u16::from_be_bytes([high, low])),
            _ => Err(HelloError::Malformed(what)),
        }
    }

    pub(super) fn sub(&mut self, len: usize, what: &'static str) -> Result<Self, HelloError> {
        let start = self.at;
        self.take(len, what)?;
        Ok(Self {
            message: self.message,
            at: start,
            end: self.at,
        })
    }

    pub(super) fn vector8(&mut self, what: &'static str) -> Result<Self, HelloError> {
        let len = self.take(1, what)?.first().copied().unwrap_or_default();
        self.sub(len.into(), what)
    }

    pub(super) fn vector16(&mut self, what: &'static str) -> Result<Self, HelloError> {
        let len = self.u16(what)?;
        self.sub(len.into(), what)
    }

    /// Reads a vector that must fill its extension.
    pub(super) fn list(&mut self, what: &'static str) -> Result<Self, HelloError> {
        let list = self.vector16(what)?;
        self.finish(what)?;
        Ok(list)
    }

    pub(super) fn numbers(&mut self, what: &'static str) -> Result<Vec<u16>, HelloError> {
        let count = (self.end - self.at) / 2;
        if count > MAX_ITEMS {
            return Err(HelloError::Malformed(what));
        }
        let mut numbers = Vec::with_capacity(count);
        while !self.is_empty() {
            numbers.push(self.u16(what)?);
        }
        Ok(numbers)
    }

    pub(super) fn server_name(&mut self) -> Result<Option<Range<usize>>, HelloError> {
        const WHAT: &str = "server_name";
        let mut names = self.list(WHAT)?;
        let mut found = None;
        let mut count = 0;
        while !names.is_empty() {
            let kind = names.take(1, WHAT)?;
            let name = names.vector16(WHAT)?;
            let bytes = names.message.get(name.range()).unwrap_or_default();
            count += 1;
            if kind == [0] {
                if found.is_some() || bytes.is_empty() || !bytes.is_ascii() {
                    return Err(HelloError::Malformed(WHAT));
                }
                found = Some(name.range());
            }
            if count > MAX_ITEMS {
                return Err(HelloError::Malformed(WHAT));
            }
        }
        Ok(found)
    }

    /// Reads the first of the identities (RFC 8446 §4.2.11). The TLS library reads the rest.
    pub(super) fn first_identity(&mut self) -> Result<Range<usize>, HelloError> {
        const WHAT: &str = "pre_shared_key";
        let identity = self.vector16(WHAT)?.vector16(WHAT)?.range();
        if identity.is_empty() {
            return Err(HelloError::Malformed(WHAT));
        }
        Ok(identity)
    }

    pub(super) fn protocol_names(&mut self) -> Result<Range<usize>, HelloError> {
        const WHAT: &str = "application_layer_protocol_negotiation";
        let mut names = self.list(WHAT)?;
        let range = names.range();
        let mut count = 0;
        while !names.is_empty() {
            let name = names.vector8(WHAT)?;
            count += 1;
            if name.is_empty() || count > MAX_ITEMS {
                return Err(HelloError::Malformed(WHAT));
            }
        }
        Ok(range)
    }

    pub(super) fn key_shares(&mut self) -> Result<Vec<KeyShare>, HelloError> {
        const WHAT: &str = "key_share";
        let mut entries = self.list(WHAT)?;
        let mut shares = Vec::new();
        while !entries.is_empty() {
            let group = Group(entries.u16(WHAT)?);
            let share = entries.vector16(WHAT)?;
            if shares.len() >= MAX_ITEMS {
                return Err(HelloError::Malformed(WHAT));
            }
            shares.push(KeyShare {
                group,
                len: share.end - share.at,
            });
        }
        Ok(shares)
    }
}
