//! The size in pixels of an image that is sent as base64.

/// As much of an image as is looked at: enough for the header of any JPEG with a thumbnail.
const MAX_HEADER: usize = 512 * 1024;

/// Returns width and height, if the format is PNG, GIF, JPEG or WebP and the header is whole.
pub(crate) fn dimensions(base64: &str) -> Option<(u32, u32)> {
    let bytes = decoded(&base64.as_bytes()[..base64.len().min(MAX_HEADER)])?;
    png(&bytes).or_else(|| gif(&bytes)).or_else(|| jpeg(&bytes)).or_else(|| webp(&bytes))
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    Some((big_endian(header.get(8..12)?), big_endian(header.get(12..16)?)))
}

fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    let size = bytes.strip_prefix(b"GIF87a").or_else(|| bytes.strip_prefix(b"GIF89a"))?;
    Some((little_endian(size.get(0..2)?), little_endian(size.get(2..4)?)))
}

/// Walks over the segments of a JPEG to the one that starts the frame.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
    loop {
        let (marker, length) = (*rest.get(1)?, big_endian(rest.get(2..4)?) as usize);
        if (0xc0..=0xcf).contains(&marker) && ![0xc4, 0xc8, 0xcc].contains(&marker) {
            return Some((big_endian(rest.get(7..9)?), big_endian(rest.get(5..7)?)));
        }
        rest = rest.get(2 + length..)?;
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    let chunk = bytes.strip_prefix(b"RIFF")?.get(4..)?.strip_prefix(b"WEBP")?;
    let data = chunk.get(8..)?;
    match chunk.get(..4)? {
        b"VP8X" => Some((little_endian(data.get(4..7)?) + 1, little_endian(data.get(7..10)?) + 1)),
        b"VP8L" => {
            let bits = little_endian(data.get(1..5)?);
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8 " => Some((little_endian(data.get(6..8)?) & 0x3fff, little_endian(data.get(8..10)?) & 0x3fff)),
        _ => None,
    }
}

fn big_endian(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

/// Decodes base64 up to its padding. None if a character is not of its alphabet.
fn decoded(base64: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::with_capacity(base64.len() / 4 * 3), 0_u32, 0);
    for character in base64.iter().take_while(|character| **character != b'=') {
        bits = (bits << 6) | u32::from(sextet(*character)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

fn sextet(character: u8) -> Option<u8> {
    match character {
        b'A'..=b'Z' => Some(character - b'A'),
        b'a'..=b'z' => Some(character - b'a' + 26),
        b'0'..=b'9' => Some(character - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Returns whether a text is base64 with its padding.
pub(crate) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - digits.len() <= 2
        && digits.bytes().all(|c| sextet(c).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_the_headers_of_all_formats() {
        let png = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAYAAAA=";
        assert_eq!(dimensions(png), Some((2, 3)));
        let gif = "R0lGODlhBAAFAIAAAAAAAP///yH5";
        assert_eq!(dimensions(gif), Some((4, 5)));
        // An APP0 segment, then the start of a frame of 16 lines of 8 pixels.
        let jpeg = "/9j/4AAQSkZJRgABAQAAAQABAAD/wAARCAAQAAgDASIAAhEBAxEB";
        assert_eq!(dimensions(jpeg), Some((8, 16)));
        let webp = "UklGRhIAAABXRUJQVlA4WAoAAAAAAAAABwAACQAA";
        assert_eq!(dimensions(webp), Some((8, 10)));
        assert_eq!(dimensions("AAAA"), None);
        assert_eq!(dimensions("not base64!"), None);
    }
}
