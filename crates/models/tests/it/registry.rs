//! The catalog of models.

use std::path::{Path, PathBuf};

use llm_do_core::{ModelErrorKind, Models};
use llm_do_models::{Script, StandardModels, says};

use crate::support::Talk;

/// A directory of one test.
fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn refusal(models: &StandardModels, name: &str) -> String {
    let error = models.resolve(name).err().unwrap();
    assert_eq!(error.kind, ModelErrorKind::NoModel);
    error.message
}

async fn say(models: &StandardModels, name: &str) -> String {
    let model = models.resolve(name).unwrap();
    let heard = Talk::of("hello").hear(&mut *model.open()).await.unwrap();
    heard.end.unwrap().unwrap().message.text()
}

#[test]
fn the_offline_models_are_known_by_both_spellings() {
    let models = StandardModels::new(".");
    for (name, canonical) in [("test", "test"), ("test:echo", "test:echo"), ("test/echo", "test:echo")] {
        assert_eq!(*models.resolve(name).unwrap().name(), canonical);
    }
}

#[tokio::test]
async fn a_script_file_is_read_once_and_shared_by_all_who_name_it() {
    let directory = directory("shared-script");
    std::fs::create_dir_all(directory.join("sub")).unwrap();
    std::fs::write(directory.join("sub/a.yaml"), "[{say: one}, {say: two}, {say: three}]").unwrap();
    let models = StandardModels::new(&directory);
    assert_eq!(*models.resolve("script:sub/a.yaml").unwrap().name(), "script:sub/a.yaml");
    assert_eq!(say(&models, "script:sub/a.yaml").await, "one");
    assert_eq!(say(&models, "script/sub/a.yaml").await, "two");
    let absolute = format!("script:{}", directory.join("sub/a.yaml").display());
    assert_eq!(say(&models, &absolute).await, "three");
    assert_eq!(say(&StandardModels::new(&directory), "script:sub/a.yaml").await, "one", "another catalog");
}

#[test]
fn a_bad_script_file_is_named_with_the_place() {
    let directory = directory("bad-script");
    std::fs::write(directory.join("bad.yaml"), "- say: a\n- sya: b\n").unwrap();
    std::fs::write(directory.join("binary.yaml"), [0xff, 0xfe, 0x00]).unwrap();
    let models = StandardModels::new(&directory);
    let shown = |file: &str| directory.join(file).display().to_string();
    assert_eq!(
        refusal(&models, "script:bad.yaml"),
        format!(
            "in the script file `{}`, line 2, column 3: unknown key `sya`, did you mean `say`?",
            shown("bad.yaml")
        )
    );
    let missing = refusal(&models, "script:missing.yaml");
    assert!(missing.starts_with("the script file `missing.yaml` was not found in `/"), "{missing}");
    let outside = refusal(&models, "script:../../../../../../../../etc/passwd");
    assert!(outside.ends_with("it lies outside the project"), "{outside}");
    assert!(refusal(&models, "script:binary.yaml").ends_with("cannot be read: it is not UTF-8"));
    assert!(refusal(&models, "script:.").contains("cannot be read"));
}

#[cfg(unix)]
#[test]
fn an_endless_or_very_large_script_file_is_refused() {
    let message = refusal(&StandardModels::new("/"), "script:/dev/zero");
    assert!(message.ends_with("it is not a regular file"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("large.yaml")).unwrap().set_len(16 * 1024 * 1024 + 1).unwrap();
    let message = refusal(&StandardModels::new(folder.path()), "script:large.yaml");
    assert!(message.ends_with("it is larger than 16777216 bytes"), "{message}");
}

#[tokio::test]
async fn an_added_model_is_found_by_its_name_before_all_others() {
    let models = StandardModels::new(".")
        .with("acme/small", Script::each_call([says("from acme")]))
        .with("test", Script::each_call([says("mine")]));
    assert_eq!(say(&models, "acme:small").await, "from acme");
    assert_eq!(say(&models, "acme/small").await, "from acme");
    assert_eq!(say(&models, "test").await, "mine");
}

#[test]
fn an_unknown_model_is_answered_with_what_is_known_and_the_nearest() {
    let models = StandardModels::new(".").with("acme:small", Script::new([]));
    let cases = [
        ("tset", "; did you mean `test`?"),
        ("test:ehco", "; did you mean `test:echo`?"),
        ("scrpt:a.yaml", "; did you mean `script:a.yaml`?"),
        ("antropic:claude", "; did you mean `anthropic:claude`?"),
        ("acme:smal", "; did you mean `acme:small`?"),
        ("acme:enormous", "; did you mean `acme:small`?"),
        ("script:", "; did you mean `script:FILE`?"),
        ("nobody-knows:x", ""),
        ("", ""),
    ];
    for (name, hint) in cases {
        let known = "write `provider:model`, or `test`, `test:echo`, `script:FILE`, `acme:small`";
        assert_eq!(refusal(&models, name), format!("`{name}` is not known: {known}{hint}"));
    }
}
