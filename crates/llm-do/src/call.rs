//! What the code of a tool sees of its call, and handles on calls that are running.

pub use llm_do_core::{
    CallInfo, CallKind, CallOrigin, CallResult, CallableAgent, Cancellation, Clock, Context, FailureKind,
    FromCall, HintAudience, Inspection, LinkedPrograms, MissingNeed, Need, NeedSpec, NoticeSink, Program,
    Progress, Random, Remark, SystemClock, SystemRandom, UndeliveredNotice,
};
pub use llm_do_runtime::{Canceller, RunBuilder, SessionTurn};
