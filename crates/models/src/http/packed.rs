//! The body of a request, packed so that many small pieces cost no more than one.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use crate::transport::Chunks;

/// Copying a smaller piece costs less than handing it to the system by itself.
const SMALL: usize = 4 * 1024;
/// The most bytes that are copied together.
const PACKET: usize = 64 * 1024;

/// Pieces of a request, of which small neighbors are sent as one. Large ones are not copied.
pub(super) struct Packed {
    pieces: Chunks,
    next: Option<Bytes>,
    length: u64,
}

impl Packed {
    pub(super) fn new(pieces: Chunks) -> Self {
        Self { length: pieces.len(), pieces, next: None }
    }

    fn pop(&mut self, context: &mut Context<'_>) -> Option<Bytes> {
        if let Some(piece) = self.next.take() {
            return Some(piece);
        }
        match Pin::new(&mut self.pieces).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            _ => None,
        }
    }

    /// Returns the first piece, with those after it as far as all of them are small.
    fn packet(&mut self, context: &mut Context<'_>) -> Option<Bytes> {
        let first = self.pop(context)?;
        let is_small = |piece: &Bytes| piece.len() < SMALL;
        let mut packet = BytesMut::new();
        if is_small(&first) {
            while packet.len() < PACKET
                && let Some(piece) = self.pop(context)
            {
                if !is_small(&piece) {
                    self.next = Some(piece);
                    break;
                }
                if packet.is_empty() {
                    packet.reserve(self.left_to_pack(first.len()));
                    packet.extend_from_slice(&first);
                }
                packet.extend_from_slice(&piece);
            }
        }
        Some(if packet.is_empty() { first } else { packet.freeze() })
    }

    fn left_to_pack(&self, first: usize) -> usize {
        let left = usize::try_from(self.length).unwrap_or(PACKET).max(first);
        left.min(PACKET + SMALL)
    }
}

impl Body for Packed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let packet = self.packet(context);
        self.length -= packet.as_ref().map_or(0, |packet| packet.len() as u64);
        Poll::Ready(packet.map(|packet| Ok(Frame::data(packet))))
    }

    fn is_end_stream(&self) -> bool {
        self.length == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Packs pieces of these sizes and returns the sizes of the packets.
    fn packed(sizes: &[usize]) -> Vec<usize> {
        let mut chunks = Chunks::default();
        for (index, size) in sizes.iter().enumerate() {
            chunks.push(vec![u8::try_from(index % 251).unwrap(); *size]);
        }
        let whole = chunks.to_vec();
        let mut body = Packed::new(chunks);
        let mut context = Context::from_waker(Waker::noop());
        let mut packets: Vec<Bytes> = Vec::new();
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) {
            packets.push(frame.into_data().unwrap());
            let sent: usize = packets.iter().map(Bytes::len).sum();
            assert_eq!(body.size_hint().exact(), Some((whole.len() - sent) as u64));
            assert_eq!(body.is_end_stream(), sent == whole.len());
        }
        assert_eq!(packets.concat(), whole);
        packets.iter().map(Bytes::len).collect()
    }

    #[test]
    fn small_neighbors_are_sent_as_one() {
        assert_eq!(packed(&[10, 20, 30]), [60]);
        assert_eq!(packed(&[10, 20, SMALL, 30, 40, SMALL + 1, SMALL]), [30, SMALL, 70, SMALL + 1, SMALL]);
        assert_eq!(packed(&[1]), [1]);
        assert_eq!(packed(&[]), Vec::<usize>::new());
    }

    #[test]
    fn no_packet_grows_without_bound() {
        let packets = packed(&[1_000; 1_000]);
        assert!(packets.iter().all(|packet| *packet < PACKET + SMALL), "{packets:?}");
        assert_eq!(packets.len(), 1_000_000_usize.div_ceil(66_000));
    }

    #[test]
    fn a_large_piece_is_not_copied() {
        let large = Bytes::from(vec![1; SMALL]);
        let mut chunks = Chunks::default();
        chunks.push("small");
        chunks.push(large.clone());
        let mut body = Packed::new(chunks);
        let mut context = Context::from_waker(Waker::noop());
        let packets = [body.packet(&mut context), body.packet(&mut context)].map(Option::unwrap);
        assert_eq!(packets[1].as_ptr(), large.as_ptr());
    }
}
