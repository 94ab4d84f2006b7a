//! Which files are cassettes, and what happens to them.

use super::*;
use crate::CassetteError;

#[tokio::test]
async fn auto_records_first_and_replays_from_then_on() {
    let place = Place::new();
    let first = place.open(CassetteMode::Auto);
    assert!(!first.is_replaying());
    assert_eq!(text(&first.transport(provider([says(&[b"hello"])])), prompt("hi")).await, "hello");

    let second = place.open(CassetteMode::Auto);
    assert!(second.is_replaying());
    let transport = second.transport(nobody());
    assert_eq!(text(&transport, prompt("hi")).await, "hello");
    assert_eq!(fails(&transport, prompt("other")).await.kind, ModelErrorKind::Invalid);
}

#[tokio::test]
async fn a_recording_without_an_exchange_does_not_stand_in_the_way_of_the_next() {
    let place = Place::new();
    drop(place.open(CassetteMode::Auto));
    assert!(!place.open(CassetteMode::Auto).is_replaying());
    std::fs::write(&place.path, "").unwrap();
    assert!(!place.open(CassetteMode::Auto).is_replaying());
}

#[tokio::test]
async fn a_line_that_was_cut_is_reported_and_not_used() {
    let place = Place::new();
    place.record(&[("a", says(&[b"1"])), ("b", says(&[b"2"]))]).await;
    let whole = place.content();
    let second = whole.trim_end().rfind('\n').unwrap() + 1;

    for end in second + 1..whole.len() - 1 {
        std::fs::write(&place.path, &whole[..end]).unwrap();
        let cassette = place.replayed();
        assert_eq!(cassette.unused(), ["line 2: POST /v1/messages"], "cut at {end}");
        let path = place.path.display();
        let warning = format!("line 3 of the cassette `{path}` was cut while it was written and is not used");
        assert_eq!(cassette.warnings(), [warning]);
    }

    std::fs::write(&place.path, whole.trim_end()).unwrap();
    assert_eq!(place.replayed().unused().len(), 2, "a last line without its end of line is whole");
}

fn refused(place: &Place, content: &str) -> CassetteError {
    std::fs::write(&place.path, content).unwrap();
    let opened = [CassetteMode::Auto, CassetteMode::Replay { strict: false }]
        .map(|mode| Cassette::open(&place.path, mode).err().expect("the file must be refused"));
    assert_eq!(place.content(), content, "a file that is refused is left as it is");
    let [auto, replay] = opened;
    assert_eq!(auto.to_string(), replay.to_string());
    replay
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let place = Place::new();
    for content in ["my diary\n", "{}\n", "[1]\n{\"llm_do_cassette\":1}\n", "\n"] {
        let error = refused(&place, content);
        assert!(matches!(error, CassetteError::NoCassette { .. }), "{content}: {error}");
        assert!(error.hint().is_some());
    }
    let error = refused(&place, "{\"llm_do_cassette\":2}\n");
    assert!(matches!(error, CassetteError::Version { version: 2, .. }), "{error}");
}

#[tokio::test]
async fn a_broken_line_is_named() {
    let place = Place::new();
    place.record(&[("a", says(&[b"\xff"]))]).await;
    let whole = place.content();
    assert!(whole.contains(r#"{"base64":"/w=="}"#), "{whole}");

    for (from, to, why) in [
        ("\"method\"", "\"way\"", "missing field `method`"),
        ("/w==", "/w*=", "a piece of its body is no base64"),
        ("\"status\":200", "\"status\":20", "20 is no status"),
    ] {
        let error = refused(
            &place,
            &format!("{}{whole}", whole.replace(from, to)).replacen("\n{\"llm_do_cassette\":1}\n", "\n", 1),
        );
        let CassetteError::Line { line, why: said, .. } = &error else { panic!("{error}") };
        assert_eq!(*line, 2);
        assert!(said.contains(why), "{said}");
        assert_eq!(error.hint().as_deref(), Some("delete the file and run again to record it anew"));
    }
}

#[test]
fn a_missing_file_cannot_be_replayed() {
    let place = Place::new();
    let error = Cassette::open(&place.path, CassetteMode::Replay { strict: true }).err().unwrap();
    assert!(matches!(error, CassetteError::Unreadable { .. }), "{error}");
    assert_eq!(error.hint().as_deref(), Some("run once without replaying to record it"));
}

#[test]
fn a_place_that_does_not_exist_is_known_before_the_first_request() {
    let place = Place::new();
    let error = Cassette::open(place.path.join("below/a/file"), CassetteMode::Record).err().unwrap();
    assert!(matches!(error, CassetteError::Unwritable { .. }), "{error}");
}
