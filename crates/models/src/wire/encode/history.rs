//! The written history: pieces that are shared with the requests in flight, and a tail that grows.

use bytes::Bytes;
use llm_do_core::{Conversation, Head};

use crate::transport::Chunks;

/// The size at which the tail becomes a piece. Small enough to be copied for each request, large enough that
/// thousands of turns make some dozens of pieces.
const PIECE_BYTES: usize = 64 * 1024;

/// The items of all messages, each with a comma before it.
#[derive(Clone, Default)]
pub(super) struct WrittenHistory {
    pieces: Vec<Bytes>,
    /// The bytes of all pieces.
    sealed: usize,
    tail: Vec<u8>,
    ends: Vec<End>,
    /// The bytes written since the beginning, those included that were dropped again.
    #[cfg(test)]
    pub(super) written: usize,
}

/// Where a message ends.
#[derive(Clone)]
struct End {
    head: Head,
    end: usize,
    /// Where a mark for the provider's cache can be put.
    mark_offset: Option<usize>,
}

impl WrittenHistory {
    /// Returns how many messages are written.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether nothing is written.
    pub(super) fn is_empty(&self) -> bool {
        self.sealed == 0 && self.tail.is_empty()
    }

    /// Returns how many of the written messages the conversation begins with.
    pub(super) fn known(&self, conversation: &Conversation) -> usize {
        let count = self.len().min(conversation.messages().len());
        let agrees = |end: &End, length: usize| conversation.head_at(length) == Some(end.head);
        match count.checked_sub(1) {
            None => 0,
            Some(last) if agrees(&self.ends[last], count) => count,
            // A head names all that is before it, so that those that agree come first.
            Some(_) => {
                let lengths: Vec<usize> = (1..=count).collect();
                lengths.partition_point(|length| agrees(&self.ends[length - 1], *length))
            }
        }
    }

    /// Goes back to an earlier number of messages.
    pub(super) fn truncate(&mut self, length: usize) {
        self.ends.truncate(length);
        let end = self.ends.last().map_or(0, |last| last.end);
        while self.sealed > end {
            let Some(piece) = self.pieces.pop() else { break };
            self.sealed -= piece.len();
            self.tail = piece.to_vec();
        }
        self.tail.truncate(end - self.sealed);
    }

    /// Adds a message that `write` writes; it returns where a mark can be put.
    pub(super) fn push(&mut self, head: Head, write: impl FnOnce(&mut Vec<u8>) -> Option<usize>) {
        #[cfg(test)]
        let start = self.tail.len();
        let mark_offset = write(&mut self.tail).map(|offset| self.sealed + offset);
        #[cfg(test)]
        {
            self.written += self.tail.len() - start;
        }
        self.ends.push(End { head, end: self.sealed + self.tail.len(), mark_offset });
        if self.tail.len() >= PIECE_BYTES {
            self.tail.shrink_to_fit();
            self.sealed += self.tail.len();
            self.pieces.push(std::mem::take(&mut self.tail).into());
        }
    }

    /// Returns the last offset for a mark among so many messages.
    pub(super) fn mark_offset_at(&self, length: usize) -> Option<usize> {
        self.ends[..length].iter().rev().find_map(|end| end.mark_offset)
    }

    /// Adds all items to a body, without the first bytes and with something put in at some offsets.
    pub(super) fn add_to(&self, body: &mut Chunks, skip: usize, inserted: &[(usize, Bytes)]) {
        let tail = Bytes::copy_from_slice(&self.tail);
        let (mut start, mut inserted) = (0, inserted.iter().peekable());
        for piece in self.pieces.iter().chain([&tail]) {
            let (mut from, end) = (skip.saturating_sub(start).min(piece.len()), start + piece.len());
            while let Some((offset, text)) = inserted.next_if(|(offset, _)| *offset < end) {
                body.push(piece.slice(from..offset - start));
                body.push(text.clone());
                from = offset - start;
            }
            body.push(piece.slice(from..));
            start = end;
        }
    }
}
