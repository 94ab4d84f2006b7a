//! Exit codes: the contract with scripts.

use std::process::ExitCode;

use llm_do::RunReport;
use llm_do::call::FailureKind;
use llm_do::event::{Event, EventBody, Status};

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// The run failed.
    Failed,
    /// Bad usage or a bad project.
    Usage,
    /// The provider or the network failed.
    Provider,
    /// A budget or limit ran out.
    Limit,
    /// The called tool was denied, or a call had to ask and nobody could be asked.
    Denied,
    /// The output does not fit its schema.
    Output,
    /// The wall time of the run is over.
    TimedOut,
    /// Interrupted: SIGINT, or stopped by a person.
    Interrupted,
    /// It waits for answers, and can be resumed once there are some.
    Parked,
    /// Nobody reads stdout any more, which ends other programs by SIGPIPE.
    Unread,
    /// Ended by SIGTERM.
    Terminated,
    /// Ended by SIGHUP.
    HungUp,
}

impl Exit {
    /// The exit of a run. A call that had to ask while nobody could be asked shows even where the run ended well.
    pub(crate) fn from_report(report: &RunReport) -> Self {
        match report.status {
            Status::Done if report.nobody_to_ask => Self::Denied,
            Status::Done => Self::Done,
            Status::Failed if was_refused(report) => Self::Usage,
            Status::Failed | Status::Unknown | Status::Record => Self::Failed,
            Status::Provider => Self::Provider,
            Status::Limit => Self::Limit,
            Status::Denied => Self::Denied,
            Status::Output => Self::Output,
            Status::TimedOut => Self::TimedOut,
            Status::Interrupted => Self::Interrupted,
            Status::Parked => Self::Parked,
        }
    }

    /// Returns the number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Provider => 3,
            Self::Limit => 4,
            Self::Denied => 5,
            Self::Output => 6,
            // `EX_TEMPFAIL` of sysexits.h: try again later.
            Self::Parked => 75,
            Self::TimedOut => 124,
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::Unread => 141,
            Self::Terminated => 143,
        }
    }
}

/// Returns whether what the person named or gave was refused at the door, so that nothing ran.
fn was_refused(report: &RunReport) -> bool {
    let at_the_door = report
        .failure
        .as_ref()
        .is_some_and(|failure| matches!(failure.kind, FailureKind::Unknown | FailureKind::Arguments));
    let ran = |event: &Event| {
        matches!(event.body, EventBody::CallExecuting { .. } | EventBody::ModelRequest { .. })
    };
    at_the_door && !report.events().iter().any(|event| ran(event))
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
