//! Removes secrets from a text that arrives in pieces.
//!
//! An Aho-Corasick automaton reads every byte once, from the first pair of bytes on with which a form begins: most
//! pieces have none and are passed on as they are. Held back are exactly the bytes of the automaton's current state: the
//! longest end of the text that may be the beginning of a secret, always shorter than the longest one. They are released
//! at the next mismatch and at the end of the text.

use std::collections::HashSet;
use std::ops::Range;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;

use super::{REMOVED, SecretMask};

/// More held-back bytes than this are hardly an accident: they wait for what follows, whatever comes between.
const MAX_CHANCE_LEN: usize = 7;

/// One bit for each pair of bytes.
const PAIR_WORDS: usize = 256 * 256 / 64;

/// Finds the forms of secrets, byte by byte.
pub(super) struct StreamAutomaton {
    nfa: NFA,
    start: StateID,
    /// Bytes with which a form begins: all others leave the automaton in its first state.
    first: [bool; 256],
    /// Pairs of bytes with which a form begins, as bits.
    pairs: Box<[u64; PAIR_WORDS]>,
    /// No more than so many held-back bytes are given out before it is known what they are.
    chance_len: usize,
    /// How many bytes may still become a longer match, by the number of the state.
    held: Vec<usize>,
}

impl StreamAutomaton {
    /// Returns an automaton for these forms, or nothing if there are none.
    pub(super) fn new(forms: &[String]) -> Option<Self> {
        if forms.is_empty() {
            return None;
        }
        // The length of secrets is bounded, so that the automaton never has too many states to be built.
        let nfa = NFA::new(forms).ok()?;
        let start = nfa.start_state(Anchored::No).ok()?;
        let held = held_bytes(&nfa, start, forms);
        let mut first = [false; 256];
        let mut pairs = Box::new([0; PAIR_WORDS]);
        for form in forms.iter().map(String::as_bytes) {
            first[usize::from(form[0])] = true;
            let pair = pair_index(form[0], form[1]);
            pairs[pair / 64] |= 1 << (pair % 64);
        }
        // Half of a short secret would be too much.
        let shortest = forms.iter().map(String::len).min().unwrap_or_default();
        let chance_len = MAX_CHANCE_LEN.min(shortest / 2 - 1);
        Some(Self { nfa, start, first, pairs, chance_len, held })
    }

    /// Returns where the longest form begins that ends in this state, as a distance from its end.
    fn match_len(&self, state: StateID) -> usize {
        let count = self.nfa.match_len(state);
        (0..count).map(|index| self.nfa.pattern_len(self.nfa.match_pattern(state, index))).max().unwrap_or(0)
    }

    fn held_in(&self, state: StateID) -> usize {
        self.held.get(state.as_usize()).copied().unwrap_or(0)
    }

    /// Returns the first position at which a form may begin. Most texts have none.
    fn candidate(&self, text: &[u8]) -> Option<usize> {
        let is_candidate = |(index, byte): (usize, &u8)| {
            self.first[usize::from(*byte)]
                && text.get(index + 1).is_none_or(|next| self.begins_with(*byte, *next))
        };
        text.iter().enumerate().position(is_candidate)
    }

    fn begins_with(&self, first: u8, second: u8) -> bool {
        let pair = pair_index(first, second);
        self.pairs[pair / 64] & (1 << (pair % 64)) != 0
    }
}

fn pair_index(first: u8, second: u8) -> usize {
    usize::from(first) * 256 + usize::from(second)
}

/// Works out how many bytes are held back in each state.
///
/// The crate does not tell the depth of a state. But after reading the first n bytes of a form, the automaton is in the
/// state of these n bytes, whatever else it knows, and every state is reached so.
fn held_bytes(nfa: &NFA, start: StateID, forms: &[String]) -> Vec<usize> {
    let forms = forms.iter().map(String::as_bytes);
    let beginnings: HashSet<&[u8]> =
        forms.clone().flat_map(|form| (1..form.len()).map(move |length| &form[..length])).collect();
    let mut held = Vec::new();
    for form in forms {
        let mut state = start;
        for (index, byte) in form.iter().enumerate() {
            state = nfa.next_state(Anchored::No, state, *byte);
            set(&mut held, state, index + 1);
        }
        // A complete form that no other one continues is known; only an end of it may begin another one.
        if !beginnings.contains(form) {
            let rest = (1..form.len()).find(|from| beginnings.contains(&form[*from..]));
            set(&mut held, state, rest.map_or(0, |from| form.len() - from));
        }
    }
    held
}

fn set(held: &mut Vec<usize>, state: StateID, bytes: usize) {
    held.resize(held.len().max(state.as_usize() + 1), 0);
    held[state.as_usize()] = bytes;
}

/// Masks one text that arrives in pieces.
pub struct StreamMask {
    mask: SecretMask,
    text: TextMask,
}

impl StreamMask {
    /// A mask for one text.
    pub fn new(mask: &SecretMask) -> Self {
        Self { mask: mask.clone(), text: TextMask::default() }
    }

    /// Returns whether a piece would be returned as it is, and nothing would be held back.
    #[inline]
    pub fn passes(&self, piece: &str) -> bool {
        match self.mask.automaton() {
            Some(automaton) => self.text.state.is_none() && automaton.candidate(piece.as_bytes()).is_none(),
            None => true,
        }
    }

    /// Takes the next piece and returns what can be shown.
    pub fn push(&mut self, piece: String) -> String {
        match self.mask.automaton() {
            Some(automaton) => self.text.push(automaton, piece),
            None => piece,
        }
    }

    /// Gives out what is held back if so few bytes are the beginning of a secret by chance only. If they turn out to
    /// be one, the rest of that secret is removed.
    pub fn interrupt(&mut self) -> String {
        match self.mask.automaton() {
            Some(automaton) if self.text.held.len() <= automaton.chance_len => self.text.flush(),
            _ => String::new(),
        }
    }

    /// Ends the text: returns what was held back.
    pub fn finish(&mut self) -> String {
        self.text.finish()
    }
}

/// One text as it arrives.
#[derive(Default)]
pub(super) struct TextMask {
    /// The state of the automaton; nothing if it is the first one. Then nothing is held back.
    state: Option<StateID>,
    /// The end of the text that may be the beginning of a secret.
    held: String,
    /// Where secrets are in `held`, in order and apart from each other.
    found: Vec<Range<usize>>,
    /// Whether the mark of the first of them was given out already.
    is_marked: bool,
    /// How many bytes of `held` were given out already.
    given: usize,
}

impl TextMask {
    /// Returns how many bytes are held back.
    #[cfg(test)]
    pub(super) fn held_len(&self) -> usize {
        self.held.len()
    }

    /// Takes the next piece and returns what can be shown.
    pub(super) fn push(&mut self, automaton: &StreamAutomaton, mut piece: String) -> String {
        let before = self.held.len();
        let from = match self.state {
            Some(_) => 0,
            None => match automaton.candidate(piece.as_bytes()) {
                Some(from) => from,
                None => return piece,
            },
        };
        self.search(automaton, piece.as_bytes(), from, before);
        let kept = self.state.map_or(0, |state| automaton.held_in(state));
        if self.found.is_empty() && self.given == 0 && kept <= piece.len() {
            // What was held back was not a secret. It is short, so that the piece is moved and not the other way round.
            piece.insert_str(0, &self.held);
            let cut = piece.len() - kept;
            self.held.clear();
            self.held.push_str(&piece[cut..]);
            piece.truncate(cut);
            return piece;
        }
        self.held.push_str(&piece);
        self.release(self.held.len() - kept)
    }

    /// Ends the text: returns what was held back.
    pub(super) fn finish(&mut self) -> String {
        self.state = None;
        self.release(self.held.len())
    }

    /// Gives out what is held back without forgetting it: if it turns out to be the beginning of a secret, the rest
    /// of that secret is removed.
    pub(super) fn flush(&mut self) -> String {
        let shown = self.shown(&self.held, self.held.len());
        self.given = self.held.len();
        self.is_marked |= self.found.first().is_some_and(|range| range.start == 0);
        shown
    }

    /// Reads a piece from an index on, with so many bytes before it that are held back.
    fn search(&mut self, automaton: &StreamAutomaton, piece: &[u8], from: usize, before: usize) {
        let mut state = self.state.unwrap_or(automaton.start);
        for (index, byte) in piece.iter().enumerate().skip(from) {
            if state == automaton.start && !automaton.first[usize::from(*byte)] {
                continue;
            }
            state = automaton.nfa.next_state(Anchored::No, state, *byte);
            if automaton.nfa.is_match(state) {
                let end = before + index + 1;
                add_match(&mut self.found, end - automaton.match_len(state)..end);
            }
        }
        self.state = (state != automaton.start).then_some(state);
    }

    /// Removes what lies before `cut` from what is held back, and returns it without secrets.
    fn release(&mut self, cut: usize) -> String {
        if self.found.is_empty() && self.given == 0 && cut == self.held.len() {
            return std::mem::take(&mut self.held);
        }
        let rest = self.held.split_off(cut);
        let ready = std::mem::replace(&mut self.held, rest);
        let shown = self.shown(&ready, cut);
        self.is_marked = self.found.iter().any(|range| range.start < cut && range.end > cut)
            || (cut == 0 && self.is_marked);
        self.given = self.given.saturating_sub(cut);
        self.found.retain(|range| range.end > cut);
        for range in &mut self.found {
            *range = range.start.saturating_sub(cut)..range.end - cut;
        }
        shown
    }

    /// Returns the text before `cut` with a mark for each secret that begins there.
    fn shown(&self, ready: &str, cut: usize) -> String {
        let mut shown = String::with_capacity(ready.len());
        let mut shown_to = self.given.min(cut);
        for (index, range) in self.found.iter().enumerate().take_while(|(_, range)| range.start < cut) {
            if range.end <= self.given {
                continue;
            }
            // Every form begins and ends with a whole character.
            shown.push_str(ready.get(shown_to..range.start).unwrap_or_default());
            if index > 0 || !self.is_marked {
                shown.push_str(REMOVED);
            }
            shown_to = range.end.min(cut);
        }
        shown.push_str(ready.get(shown_to..cut).unwrap_or_default());
        shown
    }
}

/// Adds a match that ends behind all others, and joins it with those that it overlaps.
pub(super) fn add_match(found: &mut Vec<Range<usize>>, new: Range<usize>) {
    let mut start = new.start;
    while let Some(last) = found.pop_if(|last| start < last.end) {
        start = start.min(last.start);
    }
    found.push(start..new.end);
}
