//! Keeps a bounded part of what a program prints: the beginning, the end, and the true size.

use std::collections::VecDeque;

/// What is kept of one stream.
#[derive(Debug)]
pub(crate) struct Capture {
    first: Vec<u8>,
    last: VecDeque<u8>,
    most: usize,
    total: u64,
}

impl Capture {
    /// Keeps at most so many bytes: one half from the beginning, the other from the end.
    pub(crate) fn new(most: usize) -> Self {
        Self { first: Vec::new(), last: VecDeque::new(), most, total: 0 }
    }

    /// Takes what was printed next.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.most - self.most / 2).saturating_sub(self.first.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.first.extend_from_slice(first);
        let most_last = self.most / 2;
        let newest = &rest[rest.len().saturating_sub(most_last)..];
        let surplus = (self.last.len() + newest.len()).saturating_sub(most_last);
        self.last.drain(..surplus.min(self.last.len()));
        self.last.extend(newest);
    }

    /// Returns how many bytes were printed.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns whether something was left out.
    pub(crate) fn is_cut(&self) -> bool {
        self.total > (self.first.len() + self.last.len()) as u64
    }

    /// Returns the text, with a mark where something was left out.
    pub(crate) fn text(&self) -> String {
        let last: Vec<u8> = self.last.iter().copied().collect();
        if !self.is_cut() {
            return String::from_utf8_lossy(&[self.first.as_slice(), &last].concat()).into_owned();
        }
        let kept = (self.first.len() + self.last.len()) as u64;
        let mark = format!("\n[... {} of {} bytes left out ...]\n", self.total - kept, self.total);
        format!("{}{mark}{}", String::from_utf8_lossy(&self.first), String::from_utf8_lossy(&last))
    }
}

/// Splits off what can be shown: a character that is not complete yet waits for its other bytes.
pub(crate) fn take_text(pending: &mut Vec<u8>) -> String {
    let incomplete = match std::str::from_utf8(pending) {
        Err(error) if error.error_len().is_none() => pending.len() - error.valid_up_to(),
        _ => 0,
    };
    let rest = pending.split_off(pending.len() - incomplete);
    let text = String::from_utf8_lossy(pending).into_owned();
    *pending = rest;
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept_as_it_is_however_it_arrives() {
        for size in [1, 3, 10] {
            let mut capture = Capture::new(10);
            "0123456789".as_bytes().chunks(size).for_each(|chunk| capture.push(chunk));
            assert_eq!(
                (capture.text().as_str(), capture.is_cut(), capture.total()),
                ("0123456789", false, 10)
            );
        }
    }

    #[test]
    fn of_more_the_beginning_the_end_and_the_size_remain() {
        for size in [1, 4, 7, 100] {
            let mut capture = Capture::new(6);
            let text = "abcdefghijklmnopqrstuvwxyz";
            text.as_bytes().chunks(size).for_each(|chunk| capture.push(chunk));
            assert_eq!(capture.text(), "abc\n[... 20 of 26 bytes left out ...]\nxyz");
            assert!(capture.is_cut());
        }
    }

    #[test]
    fn a_sign_cut_in_two_waits_for_its_other_half() {
        let mut pending = b"a\xc3".to_vec();
        assert_eq!(take_text(&mut pending), "a");
        pending.push(0xbc);
        assert_eq!(take_text(&mut pending), "\u{fc}");
        pending.extend(b"\xff\xfez");
        assert_eq!(take_text(&mut pending), "\u{fffd}\u{fffd}z");
    }
}
