/// PATH_CHALLENGE (RFC 9000 §19.17).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathChallenge(pub [u8; 8]);

/// PATH_RESPONSE (RFC 9000 §19.18).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathResponse(pub [u8; 8]);
