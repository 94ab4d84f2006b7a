//! The colours of a terminal, dark and light.

/// Red, green, blue and how much of it is there.
pub(super) type Colour = [u8; 4];

/// What the colours of a screen are in a picture.
pub(super) struct Colours {
    pub(super) background: Colour,
    pub(super) foreground: Colour,
    pub(super) cursor: Colour,
    pub(super) title: Colour,
    pub(super) title_text: Colour,
    /// The three discs in a window's title.
    pub(super) lights: [Colour; 3],
    /// The sixteen colours: eight, then their bright ones.
    ansi: [Colour; 16],
}

const fn hex(value: u32) -> Colour {
    [(value >> 16) as u8, (value >> 8) as u8, value as u8, 255]
}

const LIGHTS: [Colour; 3] = [hex(0xec6a5e), hex(0xf4bf4f), hex(0x61c554)];

pub(super) static DARK: Colours = Colours {
    background: hex(0x1b1d23),
    foreground: hex(0xd7dae0),
    cursor: hex(0xaeb6c6),
    title: hex(0x2b2e37),
    title_text: hex(0x9aa1b0),
    lights: LIGHTS,
    ansi: [
        hex(0x2b2e37),
        hex(0xe2727b),
        hex(0x93c47d),
        hex(0xdfb96d),
        hex(0x6aa9ee),
        hex(0xc586d9),
        hex(0x5fbcc7),
        hex(0xc3c8d2),
        hex(0x7a8191),
        hex(0xf0929a),
        hex(0xaedb9a),
        hex(0xf0d08e),
        hex(0x8fc2f7),
        hex(0xdaa5ea),
        hex(0x86d5de),
        hex(0xf5f7fa),
    ],
};

pub(super) static LIGHT: Colours = Colours {
    background: hex(0xfbfbfa),
    foreground: hex(0x30343c),
    cursor: hex(0x646c7a),
    title: hex(0xe6e6e3),
    title_text: hex(0x6b7280),
    lights: LIGHTS,
    ansi: [
        hex(0x30343c),
        hex(0xc4313b),
        hex(0x3f8a2d),
        hex(0xa06a00),
        hex(0x2465c2),
        hex(0x9436a8),
        hex(0x0b7c88),
        hex(0xa9adb5),
        hex(0x80858f),
        hex(0xdb4f58),
        hex(0x57a544),
        hex(0xbd8413),
        hex(0x3f7fdc),
        hex(0xad54c0),
        hex(0x2897a3),
        hex(0xe9eaec),
    ],
};

impl Colours {
    /// Returns a colour of a screen; `usual` where it says none.
    pub(super) fn of(&self, colour: vt100::Color, usual: Colour) -> Colour {
        match colour {
            vt100::Color::Default => usual,
            vt100::Color::Idx(number @ 0..16) => self.ansi[usize::from(number)],
            vt100::Color::Idx(number @ 16..232) => cube(number - 16),
            vt100::Color::Idx(number) => {
                let grey = 8 + 10 * (number - 232);
                [grey, grey, grey, 255]
            }
            vt100::Color::Rgb(red, green, blue) => [red, green, blue, 255],
        }
    }
}

/// A colour of the cube of six steps each.
fn cube(number: u8) -> Colour {
    let step = |digit: u8| if digit == 0 { 0 } else { 55 + 40 * digit };
    [step(number / 36), step(number / 6 % 6), step(number % 6), 255]
}

/// A colour on the way from one to another.
pub(super) fn between(from: Colour, to: Colour, part: f32) -> Colour {
    std::array::from_fn(|index| {
        let (from, to) = (f32::from(from[index]), f32::from(to[index]));
        (from + (to - from) * part).round() as u8
    })
}
