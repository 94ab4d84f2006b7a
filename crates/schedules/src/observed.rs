//! Watches when a request queues for a reservation, when it is served and when it gives up.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex as Notebook, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use shuttle::current::me;
use shuttle::scheduler::TaskId;

use crate::budget::{BudgetRefusal, Reservation};

/// The number of a request.
pub(crate) type Ticket = usize;

/// The number of a ceiling.
pub(crate) type Place = usize;

/// One thing that happened to a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A request is about to ask for a reservation below this ceiling.
    Started(Ticket, Place),
    /// It was told to wait.
    Queued(Ticket),
    /// It looks again whether its waiting is over.
    Looking(Ticket),
    /// This task told it that its waiting is over.
    Served(Ticket, TaskId),
    /// It has its answer: granted or refused.
    Ended(Ticket, bool),
    /// It gives up without having seen an answer.
    Abandoned(Ticket),
}

/// What happened, in order. Its lock is not shuttle's, so that a note is not a point of scheduling.
#[derive(Debug, Default)]
pub(crate) struct Book(Notebook<Vec<Moment>>);

impl Book {
    pub(crate) fn note(&self, moment: Moment) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(moment);
    }

    pub(crate) fn all(&self) -> Vec<Moment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that a request starts and returns its number.
    fn start(&self, place: Place) -> Ticket {
        let mut moments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = moments.len();
        moments.push(Moment::Started(ticket, place));
        ticket
    }
}

impl fmt::Display for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.all().iter().try_for_each(|moment| writeln!(f, "{moment:?}"))
    }
}

/// A request for a reservation that notes what becomes of it.
pub(crate) struct Observed<'a> {
    inner: Pin<Box<dyn Future<Output = Reserved<'a>> + Send + 'a>>,
    book: Arc<Book>,
    place: Place,
    stage: Stage,
}

/// The answer to a request.
pub(crate) type Reserved<'a> = Result<Reservation<'a>, BudgetRefusal>;

#[derive(Clone, Copy)]
enum Stage {
    Fresh,
    Waiting(Ticket),
    Ended,
}

impl<'a> Observed<'a> {
    pub(crate) fn new(
        book: &Arc<Book>,
        place: Place,
        inner: impl Future<Output = Reserved<'a>> + Send + 'a,
    ) -> Self {
        Self { inner: Box::pin(inner), book: book.clone(), place, stage: Stage::Fresh }
    }
}

impl<'a> Future for Observed<'a> {
    type Output = Reserved<'a>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (ticket, first) = match self.stage {
            Stage::Waiting(ticket) => {
                self.book.note(Moment::Looking(ticket));
                (ticket, false)
            }
            _ => (self.book.start(self.place), true),
        };
        self.stage = Stage::Waiting(ticket);
        let bell = Bell { ticket, book: self.book.clone(), waker: context.waker().clone() };
        let polled = self.inner.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::new(bell))));
        match &polled {
            Poll::Pending if first => self.book.note(Moment::Queued(ticket)),
            Poll::Pending => {}
            Poll::Ready(reserved) => {
                self.stage = Stage::Ended;
                self.book.note(Moment::Ended(ticket, reserved.is_ok()));
            }
        }
        polled
    }
}

impl Drop for Observed<'_> {
    fn drop(&mut self) {
        if let Stage::Waiting(ticket) = self.stage {
            self.book.note(Moment::Abandoned(ticket));
        }
    }
}

/// Wakes a request and notes it: the budget wakes it in the very moment in which it serves it.
struct Bell {
    ticket: Ticket,
    book: Arc<Book>,
    waker: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.book.note(Moment::Served(self.ticket, me()));
        self.waker.wake_by_ref();
    }
}
