//! Chance that can be repeated: splitmix64, seeded by the place at which it is used.

/// A deterministic generator.
///
/// Equal seeds and places give equal choices, in whatever order the tasks of a case are scheduled.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// The chance of a whole case.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The chance at one place of a case.
    pub fn at(seed: u64, place: &[&str]) -> Self {
        // FNV-1a; the byte after each part keeps `ab, c` and `a, bc` apart.
        let bytes = place.iter().flat_map(|part| part.bytes().chain([0xff]));
        let hash = bytes.fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut chance = Self(hash);
        chance.bits();
        chance
    }

    /// Returns 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number from 0 up to, not including, the end.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.bits() % end.max(1) as u64).unwrap_or_default()
    }

    /// Returns a number from 0 up to, not including, the end.
    pub fn below_u64(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    /// Returns a number from the first to the last.
    pub fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// Says yes in so many of a hundred cases.
    pub fn percent(&mut self, share: u64) -> bool {
        self.bits() % 100 < share
    }

    /// Picks one of several.
    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Picks one of several by weight.
    pub fn weighted<T: Copy>(&mut self, choices: &[(u32, T)]) -> T {
        let total: u32 = choices.iter().map(|(weight, _)| weight).sum();
        let mut place = self.bits() % u64::from(total);
        for (weight, choice) in choices {
            match place.checked_sub(u64::from(*weight)) {
                Some(rest) => place = rest,
                None => return *choice,
            }
        }
        choices[0].1
    }
}
