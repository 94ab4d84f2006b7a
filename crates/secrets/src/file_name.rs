//! What the name of a file says: secret in any case, or in which format passwords would be in it.

use std::path::Path;

/// What the name of a file says about its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// It is secret whatever it holds; the text says what that is.
    Credentials(&'static str),
    /// It is secret if it holds a password or token in this format.
    Config(ConfigFormat),
    /// It is secret if it holds a private key or a token.
    Ordinary,
}

/// A configuration file that may hold passwords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigFormat {
    /// `NAME=value`.
    Dotenv,
    /// npm and yarn.
    Npmrc,
    /// Uploads to package indexes.
    Pypirc,
    /// pip.
    PipConf,
    /// git: addresses and headers.
    Git,
}

const SSH: &str = "SSH key";
const CLOUD: &str = "credentials of a cloud provider";
const LOGIN: &str = "stored login";
const BROWSER: &str = "browser profile";
const HISTORY: &str = "shell history";
const STORE: &str = "key store";

/// Directories, as the names on the way to them: everything below is secret.
const DIRECTORIES: &[(&[&str], &str)] = &[
    (&[".ssh"], SSH),
    (&[".gnupg"], STORE),
    (&[".aws"], CLOUD),
    (&[".azure"], CLOUD),
    (&[".kube"], CLOUD),
    (&[".config", "gcloud"], CLOUD),
    (&["keyrings"], STORE),
    (&[".password-store"], STORE),
    (&[".oci"], CLOUD),
    (&[".config", "op"], STORE),
    (&[".mozilla"], BROWSER),
    (&[".config", "google-chrome"], BROWSER),
    (&[".config", "chromium"], BROWSER),
    (&[".config", "bravesoftware"], BROWSER),
    (&[".config", "microsoft-edge"], BROWSER),
    (&["google", "chrome", "user data"], BROWSER),
    (&["application support", "google", "chrome"], BROWSER),
    (&["application support", "firefox"], BROWSER),
];

/// Files by their last names.
const FILES: &[(&[&str], &str)] = &[
    (&[".docker", "config.json"], LOGIN),
    (&[".netrc"], LOGIN),
    (&["_netrc"], LOGIN),
    (&[".pgpass"], LOGIN),
    (&[".git-credentials"], LOGIN),
    (&[".config", "git", "credentials"], LOGIN),
    (&[".vault-token"], LOGIN),
    (&["gh", "hosts.yml"], LOGIN),
    (&[".cargo", "credentials"], LOGIN),
    (&[".cargo", "credentials.toml"], LOGIN),
    (&["llm-do", "credentials.toml"], LOGIN),
    (&[".gem", "credentials"], LOGIN),
    (&[".terraform.d", "credentials.tfrc.json"], LOGIN),
    (&["rclone", "rclone.conf"], LOGIN),
    (&[".s3cfg"], CLOUD),
    (&[".boto"], CLOUD),
    (&[".databrickscfg"], CLOUD),
    (&[".config", "doctl", "config.yaml"], CLOUD),
    (&[".config", "glab-cli", "config.yml"], LOGIN),
    (&[".config", "hub"], LOGIN),
    (&["containers", "auth.json"], LOGIN),
    (&[".dockercfg"], LOGIN),
    (&["composer", "auth.json"], LOGIN),
    (&[".composer", "auth.json"], LOGIN),
    (&[".m2", "settings.xml"], LOGIN),
    (&[".gradle", "gradle.properties"], LOGIN),
    (&[".claude", ".credentials.json"], LOGIN),
    (&[".codex", "auth.json"], LOGIN),
    (&[".gemini", "oauth_creds.json"], LOGIN),
    (&[".vault_pass"], STORE),
    (&[".htpasswd"], LOGIN),
    (&[".my.cnf"], LOGIN),
    (&[".mylogin.cnf"], LOGIN),
    (&["logins.json"], BROWSER),
    (&["key4.db"], BROWSER),
    (&["cookies.sqlite"], BROWSER),
    (&["login data"], BROWSER),
    (&[".bash_history"], HISTORY),
    (&[".zsh_history"], HISTORY),
    (&[".sh_history"], HISTORY),
    (&[".histfile"], HISTORY),
    (&["fish_history"], HISTORY),
    (&[".python_history"], HISTORY),
    (&[".node_repl_history"], HISTORY),
    (&[".psql_history"], HISTORY),
    (&[".mysql_history"], HISTORY),
    (&[".rediscli_history"], HISTORY),
];

/// Endings of names.
const ENDINGS: &[(&str, &str)] = &[
    (".p12", STORE),
    (".pfx", STORE),
    (".jks", STORE),
    (".kdbx", STORE),
    (".keystore", STORE),
    (".keychain-db", STORE),
    (".tfstate", "Terraform state"),
    (".tfstate.backup", "Terraform state"),
];

/// Files below `.ssh` that other people may read.
const PUBLIC_SSH: &[&str] = &["config", "known_hosts", "known_hosts.old", "authorized_keys"];

/// Returns what the name of a file says. A name is compared without case, as some file systems do.
pub fn name_rule(path: &Path) -> NameRule {
    let names: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
    let Some((name, parents)) = names.split_last() else { return NameRule::Ordinary };
    let found = below(parents, name).or_else(|| by_last_names(&names)).or_else(|| by_ending(name));
    match found {
        Some(what) => NameRule::Credentials(what),
        None if is_git_config(parents, name) => NameRule::Config(ConfigFormat::Git),
        None => config_format(name).map_or(NameRule::Ordinary, NameRule::Config),
    }
}

/// Returns whether git reads a file as its configuration: of the user, of a repository or of a submodule.
fn is_git_config(parents: &[String], name: &str) -> bool {
    let of_user = parents.ends_with(&[".config".to_owned(), "git".to_owned()]);
    let of_repository = parents.last().is_some_and(|parent| parent == ".git");
    let of_submodule = parents.windows(2).any(|part| part == [".git", "modules"]);
    name == ".gitconfig" || (name == "config" && (of_user || of_repository || of_submodule))
}

/// Names of configuration files that may hold passwords. Those behind `.env.` are spelled out letter by letter, so that
/// examples (`.env.example`, `.env.sample`, `.env.dist`, `.env.template`) are not among them.
const CONFIG_GLOBS: &[&str] = &[
    ".env",
    ".envrc",
    ".env.[!dest]*",
    ".env.d[!ei]*",
    ".env.de[!f]*",
    ".env.di[!s]*",
    ".env.e[!x]*",
    ".env.s[!a]*",
    ".env.sa[!m]*",
    ".env.t[!emp]*",
    ".env.te[!m]*",
    "*.env",
    ".npmrc",
    "npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    "pip.conf",
    "pip.ini",
    ".pip.conf",
    ".gitconfig",
    ".git/config",
    ".git/modules/**/config",
    ".config/git/config",
];

/// Returns globs for the names of files that may be secret, for whoever cannot look at their content: relative to any
/// directory, in small letters. A few of them match more than [`name_rule`] does (`example.env`, `.ssh/config`).
pub fn secret_name_globs() -> Vec<String> {
    let directories = DIRECTORIES.iter().map(|(path, _)| format!("{}/**", path.join("/")));
    let files = FILES.iter().map(|(path, _)| path.join("/"));
    let endings = ENDINGS.iter().map(|(ending, _)| format!("*{ending}"));
    let config = CONFIG_GLOBS.iter().map(|glob| (*glob).to_owned());
    directories.chain(files).chain(endings).chain(config).collect()
}

fn below(parents: &[String], name: &str) -> Option<&'static str> {
    let is_on_way = |path: &[&str]| parents.windows(path.len()).any(|part| part == path);
    let (path, what) = DIRECTORIES.iter().find(|(path, _)| is_on_way(path))?;
    let is_public = path == &[".ssh"] && (PUBLIC_SSH.contains(&name) || name.ends_with(".pub"));
    (!is_public).then_some(what)
}

fn by_last_names(names: &[String]) -> Option<&'static str> {
    let ends = |path: &[&str]| names.len() >= path.len() && names[names.len() - path.len()..] == *path;
    FILES.iter().find(|(path, _)| ends(path)).map(|(_, what)| *what)
}

fn by_ending(name: &str) -> Option<&'static str> {
    ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, what)| *what)
}

fn config_format(name: &str) -> Option<ConfigFormat> {
    match name {
        ".npmrc" | "npmrc" | ".yarnrc" | ".yarnrc.yml" => Some(ConfigFormat::Npmrc),
        ".pypirc" => Some(ConfigFormat::Pypirc),
        "pip.conf" | "pip.ini" | ".pip.conf" => Some(ConfigFormat::PipConf),
        name if is_dotenv(name) => Some(ConfigFormat::Dotenv),
        _ => None,
    }
}

/// `.env`, `.env.local`, `prod.env`, `.envrc`; but not those that show people what to write.
fn is_dotenv(name: &str) -> bool {
    const EXAMPLES: &[&str] =
        &["example", "examples", "sample", "template", "tmpl", "tpl", "dist", "defaults"];
    let is_env = name == ".env" || name == ".envrc" || name.starts_with(".env.") || name.ends_with(".env");
    is_env && !name.split(['.', '-', '_']).any(|part| EXAMPLES.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_globs_match_every_name_that_the_rule_finds() {
        let globs: Vec<globset::GlobMatcher> = secret_name_globs()
            .iter()
            .map(|glob| {
                let glob = format!("**/{glob}");
                globset::GlobBuilder::new(&glob).literal_separator(true).build().unwrap().compile_matcher()
            })
            .collect();
        let matches = |name: &str| globs.iter().any(|glob| glob.is_match(name));
        let below = DIRECTORIES.iter().map(|(path, _)| format!("x/{}/a/b", path.join("/")));
        let files = FILES.iter().map(|(path, _)| format!("x/{}", path.join("/")));
        let endings = ENDINGS.iter().map(|(ending, _)| format!("x/name{ending}"));
        let config = [
            ".env",
            ".envrc",
            ".env.local",
            ".env.prod",
            ".env.test",
            "prod.env",
            "npmrc",
            "pip.ini",
            ".gitconfig",
            "x/.git/config",
            ".git/modules/a/b/config",
            ".config/git/config",
        ];
        let names = below.chain(files).chain(endings).chain(config.map(str::to_owned));
        for name in names {
            assert_ne!(name_rule(Path::new(&name)), NameRule::Ordinary, "{name}");
            assert!(matches(&name), "{name}");
        }
        for name in ["main.rs", ".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults"]
        {
            assert_eq!(name_rule(Path::new(name)), NameRule::Ordinary, "{name}");
            assert!(!matches(name), "{name}");
        }
    }
}
