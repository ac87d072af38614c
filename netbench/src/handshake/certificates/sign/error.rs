//! Reasons for which a signature is not valid, and the exit code of each.

use std::path::PathBuf;

/// Explanation of the exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  valid: the file is what the signer signed, and the signer's certificate leads to a trusted root
  2  wrong arguments, or a file that cannot be read
  3  the file or its signature was changed after it was signed
  4  the signature file is no complete signature: truncated, damaged, or of another format
  5  an algorithm that is not accepted: keys and signatures of the whole chain are ML-DSA
  6  no path from the signer's certificate to a trusted root
  7  a certificate is expired or not valid yet
  8  the signer's certificate is not one for signing files";

/// A signature that is not valid. Each error has an [exit code](EXIT_CODES).
#[derive(Debug, thiserror::Error)]
pub(crate) enum VerifyError {
    #[error("cannot read {path}: {problem}", path = path.display())]
    Unreadable { path: PathBuf, problem: String },
    #[error("not valid: {0}; get the file and its signature from the signer again")]
    Changed(&'static str),
    #[error("not valid: {0}; get the signature from the signer again")]
    Malformed(String),
    #[error("not valid: {0}; sign with ML-DSA, below authorities with ML-DSA")]
    Algorithm(String),
    #[error("not valid: {0}; give the root of this signer with --trust, or do not trust the file")]
    Untrusted(String),
    #[error("not valid: {0}; have the file signed with a current certificate")]
    Time(String),
    #[error(
        "not valid: {0}; sign with a certificate for documentSigning, emailProtection or \
         codeSigning, or without extended key usage"
    )]
    Purpose(String),
}

impl VerifyError {
    pub(super) fn malformed(problem: impl Into<String>) -> Self {
        Self::Malformed(problem.into())
    }

    /// Returns the exit code of `netbench verify`.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Unreadable { .. } => 2,
            Self::Changed(_) => 3,
            Self::Malformed(_) => 4,
            Self::Algorithm(_) => 5,
            Self::Untrusted(_) => 6,
            Self::Time(_) => 7,
            Self::Purpose(_) => 8,
        }
    }
}
