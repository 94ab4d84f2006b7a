//! Choosing an implementation by type.

use std::marker::PhantomData;

/// Asks what a type can do, in code that is written before the type is known.
///
/// Several traits have a method of the same name: one is implemented for `&&Probe<T>`, the next for
/// `&Probe<T>`, the last for `Probe<T>`, each with weaker bounds on `T`. A call `(&&&probe).method()` takes
/// the first whose bounds hold, since method lookup removes one reference at a time. The last one holds for
/// every `T`; where nothing fits, its method demands a trait that nothing implements and whose error message
/// says what to do.
pub struct Probe<T>(PhantomData<fn() -> T>);

impl<T> Probe<T> {
    /// A probe of a type.
    #[expect(clippy::new_without_default, reason = "only generated code makes probes")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}
