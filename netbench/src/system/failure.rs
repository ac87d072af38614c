//! Failures of commands.

/// Failure of a subcommand: one line that says what is wrong and how to fix it.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// Returns the text of a failure and its causes, for readers without access to it.
pub(crate) fn with_causes(failure: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(failure.source(), |cause| cause.source());
    causes.fold(failure.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.ends_with(&cause) {
            text
        } else {
            format!("{text}: {cause}")
        }
    })
}
