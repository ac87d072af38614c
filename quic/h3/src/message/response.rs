//! Heads of responses (RFC 9114 §4.3.2).

use http::{Response, StatusCode, Version, uri::Authority};

use super::{
    Content, Section,
    fields::Pseudo,
    length::content_length,
    sealed::{self},
};
use crate::error::Violation;

impl sealed::Sealed for Response<()> {
    const PSEUDO: Pseudo = &[b":status"];
    const INCOMPLETE: Violation = Violation::ResponseIncomplete;

    fn of(mut section: Section, _: &mut Option<Authority>) -> Result<Self, Violation> {
        let status = section.pseudo(0).ok_or(Violation::PseudoFieldMissing)?;
        let status = StatusCode::from_bytes(&status).map_err(|_| Violation::StatusInvalid)?;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Violation::SwitchingProtocols);
        }
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.version_mut() = Version::HTTP_3;
        *response.headers_mut() = section.fields;
        Ok(response)
    }

    fn opens_tunnel(&self, asked_connect: bool) -> bool {
        asked_connect && self.status().is_success()
    }

    fn is_interim(&self) -> bool {
        self.status().is_informational()
    }

    fn content(&self) -> Result<Content, Violation> {
        let length = content_length(self.headers())?;
        Ok(match self.status() {
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => Content::Nothing,
            _ => length.map_or(Content::Any, Content::Exactly),
        })
    }
}
