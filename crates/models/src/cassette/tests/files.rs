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

#[tokio::test]
async fn an_only_exchange_that_was_cut_is_not_recorded_over_unasked() {
    let place = Place::new();
    place.record(&[("a", says(&[b"1"]))]).await;
    let cut = place.content().trim_end_matches("}\n").to_owned();
    std::fs::write(&place.path, &cut).unwrap();

    let error = Cassette::open(&place.path, CassetteMode::Auto).err().unwrap();

    assert!(matches!(error, CassetteError::Torn { .. }), "{error}");
    assert_eq!(error.hint().as_deref(), Some("to record it anew, use `--cassette-mode record`"));
    assert_eq!(place.content(), cut);
    place.record(&[("a", says(&[b"2"]))]).await;
    assert_eq!(text(&place.replayed().transport(nobody()), prompt("a")).await, "2");
}

#[tokio::test]
async fn a_good_cassette_is_kept_until_a_provider_has_answered() {
    let place = Place::new();
    place.record(&[("a", says(&[b"1"]))]).await;
    let old = place.content();

    drop(place.open(CassetteMode::Record));
    assert_eq!(place.content(), old);

    let again = place.open(CassetteMode::Record);
    let warnings = again.warnings();
    assert!(warnings[0].starts_with("no request was sent, so nothing is recorded"), "{warnings:?}");
    let no_key = Answer { status: 401, ..says(&[b"no"]) };
    let answers = [refuses(ModelErrorKind::Network, "offline"), no_key, says(&[b"2"])];
    let transport = again.transport(provider(answers));
    fails(&transport, prompt("a")).await;
    text(&transport, prompt("a")).await;
    assert_eq!(place.content(), old);
    let warnings = again.warnings();
    assert!(warnings[0].starts_with("no provider answered, so the cassette"), "{warnings:?}");

    text(&transport, prompt("a")).await;
    assert_eq!(place.replayed().unused().len(), 3);
    assert!(again.warnings().is_empty());
    drop((again, transport));
    let beside = std::fs::read_dir(place.path.parent().unwrap()).unwrap().count();
    assert_eq!(beside, 1, "nothing stays beside it");
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_to_a_cassette_stays_a_link() {
    let place = Place::new();
    let target = place.path.with_file_name("target");
    std::fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, &place.path).unwrap();

    place.record(&[("a", says(&[b"1"]))]).await;

    assert!(place.path.is_symlink());
    assert!(std::fs::read_to_string(target).unwrap().starts_with("{\"llm_do_cassette\":1}\n"));
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
        assert!(matches!(error, CassetteError::NotACassette { .. }), "{content}: {error}");
        assert!(error.hint().is_some());
        let error = Cassette::open(&place.path, CassetteMode::Record).err().unwrap();
        assert!(matches!(error, CassetteError::NotACassette { .. }), "{content}: {error}");
        assert_eq!(place.content(), content);
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
        ("/w==", "/w*=", "a piece of its body is not base64"),
        ("\"status\":200", "\"status\":20", "20 is not a status"),
    ] {
        let error = refused(
            &place,
            &format!("{}{whole}", whole.replace(from, to)).replacen("\n{\"llm_do_cassette\":1}\n", "\n", 1),
        );
        let CassetteError::Line { line, why: said, .. } = &error else { panic!("{error}") };
        assert_eq!(*line, 2);
        assert!(said.contains(why), "{said}");
        assert_eq!(error.hint().as_deref(), Some("to record it anew, use `--cassette-mode record`"));
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
