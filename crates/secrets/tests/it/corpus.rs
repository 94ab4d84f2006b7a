//! Planted secrets are all found, and ordinary files are not taken for secret ones.

use std::borrow::Cow;
use std::path::Path;

use crate::common::{private_keys, tokens};
use llm_do_secrets::{NameRule, SecretFiles, SecretGlobError, SecretKind, name_rule, redact, secrets_in};

fn judge(path: &str, content: &str) -> Option<SecretKind> {
    SecretFiles::default().judge(Path::new(path), content.as_bytes())
}

/// Texts in which people and programs leave a secret.
fn settings(secret: &str) -> Vec<String> {
    vec![
        secret.to_owned(),
        format!("{secret}\n"),
        format!("key = \"{secret}\"\n"),
        format!("{{\"token\": \"{secret}\", \"n\": 1}}"),
        format!("Authorization: Bearer {secret}\r\nAccept: */*\r\n"),
        format!("a line\\n{secret}\\nanother"),
        format!("https://example.com/?token%3D{secret}&x=1"),
        format!("The token is {secret}. Keep it."),
        format!("+{secret}\n-old\n"),
        format!("ä{secret}ü\n"),
    ]
}

#[test]
fn every_planted_token_is_found_and_replaced_wherever_it_is() {
    for seed in 1..=20 {
        for (issuer, token) in tokens(seed) {
            for text in settings(&token) {
                assert_eq!(judge("notes.txt", &text), Some(SecretKind::Token(issuer)), "{text}");
                let redacted = redact(&text);
                assert!(!redacted.contains(&token[8..]), "{text} became {redacted}");
                assert!(redacted.contains(&format!("[secret: {issuer} token, ")), "{redacted}");
            }
        }
    }
}

#[test]
fn every_planted_private_key_is_found_and_replaced_wherever_it_is() {
    for key in (1..=20).flat_map(private_keys) {
        let quoted: Vec<String> = key.lines().map(|line| format!("    > {line}")).collect();
        let numbered: Vec<String> = key.lines().enumerate().map(|(n, line)| format!("{n}: {line}")).collect();
        let cut = &key[..key.find("-----END").unwrap()];
        for text in [
            key.clone(),
            format!("before\n{key}after\n"),
            key.replace('\n', "\r\n"),
            format!("{{\"private_key\": \"{}\"}}", key.replace('\n', "\\n")),
            quoted.join("\n"),
            numbered.join("\n"),
            key.lines().map(|line| format!("+{line}\n")).collect(),
            cut.to_owned(),
        ] {
            assert_eq!(judge("notes.txt", &text), Some(SecretKind::PrivateKey), "{text}");
            let body = key.lines().rev().nth(1).unwrap();
            let redacted = redact(&text);
            assert!(redacted.contains("[secret: private key, "), "{redacted}");
            assert!(!redacted.contains(body), "{text} became {redacted}");
        }
    }
    let key = &private_keys(1)[0];
    let text = format!("before {key} between {key} after");
    let note = format!("[secret: private key, 1,{} bytes]", key.len() - 1 - 1_000);
    assert_eq!(redact(&text), format!("before {note}\n between {note}\n after"));
}

#[test]
fn a_key_of_a_checksum_is_not_taken_for_one_if_the_checksum_is_wrong() {
    for (_, token) in tokens(3).into_iter().take(6) {
        let wrong = if token.ends_with('0') { "1" } else { "0" };
        let text = format!("{}{wrong}", &token[..token.len() - 1]);
        assert_eq!(redact(&text), text);
    }
}

#[test]
fn files_that_are_secret_by_their_name() {
    for path in [
        "/home/ada/.ssh/id_ed25519",
        "/home/ada/.ssh/deploy",
        "/home/ada/.SSH/ID_RSA",
        "/home/ada/.gnupg/private-keys-v1.d/A.key",
        "/home/ada/.aws/credentials",
        "/home/ada/.azure/accessTokens.json",
        "/home/ada/.kube/config",
        "/home/ada/.config/gcloud/credentials.db",
        "/home/ada/.docker/config.json",
        "/home/ada/.netrc",
        "/home/ada/.pgpass",
        "/home/ada/.git-credentials",
        "/home/ada/.vault-token",
        "/home/ada/.config/gh/hosts.yml",
        "/home/ada/.claude/.credentials.json",
        "/home/ada/.codex/auth.json",
        "/home/ada/.gemini/oauth_creds.json",
        "/home/ada/.config/containers/auth.json",
        "/home/ada/.composer/auth.json",
        "/home/ada/.s3cfg",
        "/home/ada/.boto",
        "/home/ada/.databrickscfg",
        "/home/ada/.m2/settings.xml",
        "/home/ada/.gradle/gradle.properties",
        "/home/ada/.config/op/config",
        "/home/ada/.oci/oci_api_key",
        "/p/.vault_pass",
        "/p/.htpasswd",
        "/home/ada/.mozilla/firefox/x.default/logins.json",
        "/home/ada/.config/google-chrome/Default/Login Data",
        "/p/release.p12",
        "/p/release.PFX",
        "/p/app.jks",
        "/p/passwords.kdbx",
        "/home/ada/.bash_history",
        "/home/ada/.zsh_history",
        "/p/terraform.tfstate",
        "/p/terraform.tfstate.backup",
    ] {
        assert!(matches!(name_rule(Path::new(path)), NameRule::Credentials(_)), "{path}");
        assert!(judge(path, "anything").is_some(), "{path}");
    }
}

#[test]
fn passwords_in_configuration_files() {
    for (path, content) in [
        (".env", "DATABASE_URL=postgres://u:hunter22@db/x\n"),
        (".env", "# comment\nexport API_KEY='0123456789-real-one'\n"),
        (".env.local", "A=\nB=changeme\nC=s3cr3t-value\n"),
        (".env.production", "PASSWORD=\"correct horse battery\" # staple\n"),
        ("prod.env", "X=correcthorse\n"),
        (".envrc", "export TOKEN=qwertzuiop\n"),
        (".env", "\u{feff}PASSWORD=correcthorse\n"),
        (".env", "export  PASSWORD = \"correct-horse\"\r\n"),
        (".env", "\texport\tPASSWORD=correct-horse\n"),
        (".env", "PASSWORD: correct-horse\n"),
        (".env", "set PASSWORD=correct-horse\n"),
        (".git/config", "[remote \"origin\"]\n\turl = https://ada:correcthorse@github.com/ada/x\n"),
        (".git/config", "[http]\n\textraHeader = Authorization: Basic dXNlcjpodW50ZXIyMg==\n"),
        (".npmrc", "//registry.npmjs.org/:_authToken=0f8d2a1c-1111-4222-8333-444455556666\n"),
        (".npmrc", "_auth=dXNlcjpodW50ZXIyMg==\n"),
        (".yarnrc.yml", "npmAuthToken: \"0f8d2a1c-1111-4222\"\n"),
        (".pypirc", "[pypi]\nusername = ada\npassword = correcthorse\n"),
        ("pip.conf", "[global]\nindex-url = https://ada:correcthorse@pypi.corp/simple\n"),
    ] {
        let path = format!("/p/{path}");
        assert_eq!(judge(&path, content), Some(SecretKind::Password), "{path}: {content}");
    }
}

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\n\
    MIIBszCCAVmgAwIBAgIUQx1oYx0Vn8mXo0kqjJ9cGm0fV5QwCgYIKoZIzj0EAwIw\n\
    FDESMBAGA1UEAwwJbG9jYWxob3N0MB4XDTI0MDEwMTAwMDAwMFoXDTM0MDEwMTAw\n\
    -----END CERTIFICATE-----\n";

#[test]
fn ordinary_files_are_not_secret() {
    let parser = "const BEGIN: &str = \"-----BEGIN PRIVATE KEY-----\";\n\
        const END: &str = \"-----END PRIVATE KEY-----\";\nfn parse(text: &str) {}\n";
    let javascript = "if (!pem.includes('-----BEGIN RSA PRIVATE KEY-----')) {\n  \
        throw new InvalidPrivateKeyFormatError('generateKeyPairSynchronously');\n}\n";
    let shortened = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq...\n-----END PRIVATE KEY-----\n";
    for (path, content) in [
        ("/p/server.pem", CERTIFICATE),
        ("/p/talk.key", "PK\u{3}\u{4} a Keynote file"),
        ("/p/id_list", "1\n2\n3\n"),
        ("/p/id_rsa.pub", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 ada@home\n"),
        ("/home/ada/.ssh/id_ed25519.pub", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI ada@home\n"),
        ("/home/ada/.ssh/known_hosts", "github.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI\n"),
        ("/home/ada/.ssh/config", "Host *\n  ServerAliveInterval 60\n"),
        ("/p/src/pem.rs", parser),
        ("/p/src/pem.js", javascript),
        ("/p/README.md", shortened),
        ("/p/README.md", "export OPENAI_API_KEY=sk-...\nexport ANTHROPIC_API_KEY=sk-ant-api03-xxxx\n"),
        ("/p/README.md", "token: ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"),
        ("/p/README.md", "aws_access_key_id = AKIAIOSFODNN7EXAMPLE\n"),
        ("/p/README.md", "AIzaSyXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX\nhf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"),
        ("/p/README.md", "glpat-XXXXXXXXXXXXXXXXXXXX xoxb-your-token-here sk_live_...\n"),
        ("/p/a.rs", "let task-manager = risk_live_data; desk-or-v1-thing; ask-ant-api03\n"),
        (
            "/p/Cargo.lock",
            "checksum = \"0f8d2a1c0f8d2a1c0f8d2a1c0f8d2a1c0f8d2a1c0f8d2a1c0f8d2a1c0f8d2a1c\"\n",
        ),
        ("/p/package-lock.json", "\"integrity\": \"sha512-AKIAbcdefghijklmnopqrstuvwxyz0123456789==\"\n"),
        ("/p/.env", ""),
        ("/p/.env", "PORT=3000\nDEBUG=true\nNODE_ENV=development\nAPI_KEY=\nURL=http://localhost:3000/api\n"),
        ("/p/.env", "API_KEY=changeme\nB=your-key-here\nC=<your token>\nD=xxxxxxxxxx\nE=${OTHER_VALUE}\n"),
        ("/p/.env.example", "API_KEY=some-long-value-here\n"),
        ("/p/.env.sample", "API_KEY=some-long-value-here\n"),
        ("/p/.env.template", "API_KEY=some-long-value-here\n"),
        ("/p/.env.dist", "API_KEY=some-long-value-here\n"),
        ("/p/.env.defaults", "API_KEY=some-long-value-here\n"),
        ("/p/example.env", "API_KEY=some-long-value-here\n"),
        ("/p/.npmrc", "save-exact=true\n//npm.corp/:_authToken=${NPM_TOKEN}\n"),
        ("/p/.pypirc", "[distutils]\nindex-servers = pypi\n"),
        ("/p/pip.conf", "[global]\nindex-url = https://pypi.org/simple\n"),
        ("/p/config.json", "{\"port\": 1}"),
        ("/p/docs/gcloud/setup.md", "Run gcloud init\n"),
        ("/p/src/environment.rs", "pub struct Environment;\n"),
        ("/p/hosts.yml", "- web1\n"),
        ("/p/auth.json", "{}\n"),
        ("/p/gradle.properties", "org.gradle.jvmargs=-Xmx2g\n"),
        (
            "/p/.git/config",
            "[remote \"origin\"]\n\turl = https://github.com/ada/x\n\turl = git@github.com:ada/x\n",
        ),
    ] {
        assert_eq!(judge(path, content), None, "{path}: {content}");
        assert!(matches!(redact(content), Cow::Borrowed(_)), "{path}");
    }
}

#[test]
fn examples_are_secret_if_they_hold_a_token() {
    let (_, token) = tokens(7).remove(0);
    assert_eq!(judge("/p/.env.example", &format!("A={token}\n")), Some(SecretKind::Token("GitHub")));
}

#[test]
fn a_project_allows_files_below_its_root_by_globs() {
    let key = private_keys(1).remove(0);
    let files = SecretFiles::new("/p", ["tests/fixtures/**", "./a.pem"]).unwrap();
    let judge = |path: &str| files.judge(Path::new(path), key.as_bytes());
    assert_eq!(judge("/p/tests/fixtures/deep/key.pem"), None);
    assert_eq!(judge("/p/a.pem"), None);
    for other in ["/p/b.pem", "/p/sub/a.pem", "/q/a.pem", "/p/tests/key.pem", "/tests/fixtures/key.pem"] {
        assert_eq!(judge(other), Some(SecretKind::PrivateKey), "{other}");
    }
    let refusal = |glob: &str| SecretFiles::new("/p", [glob]).unwrap_err();
    for wrong in ["/etc/**", "../**", "a/../../b"] {
        assert_eq!(refusal(wrong), SecretGlobError::Outside { glob: wrong.to_owned() });
    }
    for len in [0, 300] {
        assert_eq!(refusal(&"x".repeat(len)), SecretGlobError::Length { len });
    }
    assert!(matches!(refusal("["), SecretGlobError::Malformed(_)));
}

#[test]
fn secrets_are_found_in_order_and_do_not_overlap() {
    let text: String = tokens(5).into_iter().map(|(_, token)| format!("{token} {token}, ")).collect();
    let spans: Vec<_> = secrets_in(text.as_bytes()).map(|secret| secret.span).collect();
    assert_eq!(spans.len(), 2 * tokens(5).len());
    assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start));
}

/// Counts what is found in the files below `LLM_DO_CORPUS`, and prints the time per byte.
#[test]
#[ignore = "reads a directory that LLM_DO_CORPUS names"]
fn a_directory_of_real_files() {
    let root = std::env::var("LLM_DO_CORPUS").unwrap();
    let (mut pending, mut files, mut bytes, mut found) = (vec![root.into()], 0u64, 0u64, Vec::new());
    let mut time = std::time::Duration::ZERO;
    while let Some(directory) = pending.pop() {
        let directory: std::path::PathBuf = directory;
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                pending.push(entry.path());
            } else if let Some(text) = std::fs::read_to_string(entry.path()).ok().filter(|_| kind.is_file()) {
                files += 1;
                bytes += text.len() as u64;
                let start = std::time::Instant::now();
                std::hint::black_box(redact(&text));
                time += start.elapsed();
                if let Some(kind) = judge(&entry.path().to_string_lossy(), &text) {
                    found.push(format!("{}: {kind}", entry.path().display()));
                }
            }
        }
    }
    eprintln!("{}", found.join("\n"));
    let per_byte = time.as_nanos() as f64 / bytes as f64;
    eprintln!(
        "{} of {files} files are secret; redact takes {per_byte:.3} ns/byte of {bytes} bytes",
        found.len()
    );
}
