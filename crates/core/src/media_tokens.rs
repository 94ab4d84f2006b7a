//! Upper bounds of the input tokens that attachments cost.
//!
//! A budget reserves them before a request is sent. Providers charge for pixels, pages and seconds, not for bytes, so
//! the size of a file says little: a picture of 300 kB costs about two thousand tokens.

use crate::{Attachment, AttachmentSource};

/// How many input tokens attachments cost at most, by media type. The figures differ between providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaTokens {
    /// One image, of the largest size that the provider does not scale down.
    pub image: u64,
    /// One page of a PDF document: its text, and the image of the page.
    pub pdf_page: u64,
    /// One second of sound.
    pub audio_second: u64,
    /// One second of video.
    pub video_second: u64,
}

impl Default for MediaTokens {
    fn default() -> Self {
        Self { image: 5_000, pdf_page: 8_000, audio_second: 50, video_second: 300 }
    }
}

/// Pages that a provider reads at most.
const MAX_PDF_PAGES: u64 = 1_000;

/// Bytes of a page in a PDF document whose page list is compressed, so that its pages cannot be counted. Scanned pages
/// are larger, pages of text a little smaller.
const PDF_PAGE_BYTES: u64 = 20_000;

/// Bytes of a second of sound at 32 kbit/s, and of video at 100 kbit/s: hardly any recording has less.
const AUDIO_SECOND_BYTES: u64 = 4_000;
const VIDEO_SECOND_BYTES: u64 = 12_500;

impl MediaTokens {
    /// Returns how many tokens an attachment costs at most. Text costs at most one token per byte.
    pub fn estimate(&self, attachment: &Attachment) -> u64 {
        let AttachmentSource::Data(data) = &attachment.source else { return self.image };
        let bytes = data.as_slice();
        let size = bytes.len() as u64;
        let media_type = attachment.media_type.as_deref().unwrap_or_default();
        match media_type.split('/').next().unwrap_or_default() {
            "image" => self.image,
            "audio" => seconds(size, AUDIO_SECOND_BYTES).saturating_mul(self.audio_second),
            "video" => seconds(size, VIDEO_SECOND_BYTES).saturating_mul(self.video_second),
            _ if media_type == "application/pdf" => pdf_pages(bytes).saturating_mul(self.pdf_page),
            _ => size,
        }
    }
}

fn seconds(bytes: u64, bytes_per_second: u64) -> u64 {
    bytes.div_ceil(bytes_per_second)
}

/// Counts the page objects of a PDF document, or estimates them from its size where they are compressed.
fn pdf_pages(bytes: &[u8]) -> u64 {
    let is_page = |at: usize| {
        let rest = bytes[at..].strip_prefix(b"/Type").map(<[u8]>::trim_ascii_start);
        rest.and_then(|rest| rest.strip_prefix(b"/Page")).is_some_and(|rest| rest.first() != Some(&b's'))
    };
    let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let counted = slashes.filter(|(at, _)| is_page(*at)).count() as u64;
    let pages = if counted > 0 { counted } else { (bytes.len() as u64).div_ceil(PDF_PAGE_BYTES) };
    pages.clamp(1, MAX_PDF_PAGES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(media_type: &str, bytes: impl Into<Vec<u8>>) -> u64 {
        MediaTokens::default().estimate(&Attachment::bytes("file", media_type, bytes))
    }

    #[test]
    fn media_cost_by_what_providers_count_and_text_by_its_bytes() {
        assert_eq!(tokens("image/png", vec![0; 300_000]), 5_000);
        assert_eq!(tokens("audio/mpeg", vec![0; 40_000]), 500);
        assert_eq!(tokens("video/mp4", vec![0; 125_000]), 3_000);
        assert_eq!(tokens("text/csv", "a,b,c"), 5);
        assert_eq!(tokens("application/zip", vec![0; 70]), 70);
    }

    #[test]
    fn pages_are_counted_or_estimated_from_the_size() {
        let listed = "%PDF-1.4 <</Type /Pages /Count 2>> <</Type/Page>> <</Type /Page /Parent 1 0 R>>";
        assert_eq!(tokens("application/pdf", listed), 2 * 8_000);
        assert_eq!(tokens("application/pdf", vec![b'x'; 100_000]), 5 * 8_000);
        assert_eq!(tokens("application/pdf", vec![b'x'; 100_000_000]), MAX_PDF_PAGES * 8_000);
        assert_eq!(tokens("application/pdf", ""), 8_000);
    }
}
