//! Secrets for tests. They are put together here, so that no file of this repository holds one.

use fastrand::Rng;

fn text(random: &mut Rng, alphabet: &[u8], len: usize) -> String {
    (0..len).map(|_| char::from(alphabet[random.usize(..alphabet.len())])).collect()
}

const HEX: &[u8] = b"0123456789abcdef";
const ALPHANUMERIC: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const DIGITS: &[u8] = b"0123456789";

fn with_checksum(prefix: &str, random: &mut Rng) -> String {
    let digits = text(random, ALPHANUMERIC, 30);
    let mut number = crc32fast::hash(digits.as_bytes());
    let mut checksum = Vec::new();
    for _ in 0..6 {
        checksum.insert(0, char::from(ALPHANUMERIC[(number % 62) as usize]));
        number /= 62;
    }
    format!("{prefix}{digits}{}", checksum.into_iter().collect::<String>())
}

/// Tokens of every known format, with the name of their issuer.
pub(crate) fn tokens(seed: u64) -> Vec<(&'static str, String)> {
    let mut random = Rng::with_seed(seed);
    let mut all = Vec::new();
    for prefix in ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"] {
        all.push(("GitHub", with_checksum(prefix, &mut random)));
    }
    all.push(("npm", with_checksum("npm_", &mut random)));
    let mut add = |issuer, parts: &[(&str, &[u8], usize)]| {
        let text = parts
            .iter()
            .map(|(fixed, alphabet, len)| format!("{fixed}{}", text(&mut random, alphabet, *len)));
        all.push((issuer, text.collect()));
    };
    add("GitHub", &[("github_pat_", ALPHANUMERIC, 22), ("_", ALPHANUMERIC, 59)]);
    add("GitLab", &[("glpat-", ALPHANUMERIC, 20)]);
    add("Anthropic", &[("sk-ant-api03-", ALPHANUMERIC, 93), ("AA", HEX, 0)]);
    add("OpenAI", &[("sk-", ALPHANUMERIC, 20), ("T3BlbkFJ", ALPHANUMERIC, 20)]);
    add("OpenAI", &[("sk-proj-", ALPHANUMERIC, 74), ("T3BlbkFJ", ALPHANUMERIC, 74)]);
    add("OpenRouter", &[("sk-or-v1-", HEX, 64)]);
    add("Google", &[("AIza", ALPHANUMERIC, 35)]);
    add("Google", &[("GOCSPX-", ALPHANUMERIC, 28)]);
    add("AWS", &[("AKIA", BASE32, 16)]);
    add("AWS", &[("ASIA", BASE32, 16)]);
    add("Hugging Face", &[("hf_", ALPHANUMERIC, 34)]);
    add("Groq", &[("gsk_", ALPHANUMERIC, 52)]);
    add("xAI", &[("xai-", ALPHANUMERIC, 80)]);
    add("Replicate", &[("r8_", ALPHANUMERIC, 37)]);
    add("Perplexity", &[("pplx-", ALPHANUMERIC, 48)]);
    add("Slack", &[("xoxb-", DIGITS, 12), ("-", DIGITS, 12), ("-", ALPHANUMERIC, 24)]);
    add("Slack", &[("hooks.slack.com/services/T", UPPER, 10), ("/B", UPPER, 10), ("/", ALPHANUMERIC, 24)]);
    add("Stripe", &[("sk_live_", ALPHANUMERIC, 24)]);
    add("PyPI", &[("pypi-AgEIcHlwaS5vcmc", ALPHANUMERIC, 150)]);
    add("SendGrid", &[("SG.", ALPHANUMERIC, 22), (".", ALPHANUMERIC, 43)]);
    add("DigitalOcean", &[("dop_v1_", HEX, 64)]);
    add("Databricks", &[("dapi", HEX, 32)]);
    add("Shopify", &[("shpat_", HEX, 32)]);
    add("Linear", &[("lin_api_", ALPHANUMERIC, 40)]);
    add("Vault", &[("hvs.", ALPHANUMERIC, 90)]);
    add("Supabase", &[("sbp_", HEX, 40)]);
    add("Grafana", &[("glsa_", ALPHANUMERIC, 32), ("_", HEX, 8)]);
    add("Atlassian", &[("ATATT3xFfGF0", ALPHANUMERIC, 180)]);
    add("Postman", &[("PMAK-", HEX, 24), ("-", HEX, 34)]);
    add("New Relic", &[("NRAK-", UPPER, 27)]);
    add("Azure Storage", &[("AccountKey=", ALPHANUMERIC, 86), ("==", HEX, 0)]);
    add("age", &[("AGE-SECRET-KEY-1", UPPER, 58)]);
    all
}

/// Private keys as programs write them: the label and the number of bytes of base64.
pub(crate) fn private_keys(seed: u64) -> Vec<String> {
    let mut random = Rng::with_seed(seed);
    let sizes = [("RSA ", 1_588, 64), ("", 1_624, 64), ("", 64, 64), ("EC ", 164, 64), ("OPENSSH ", 364, 70)];
    let mut keys: Vec<String> =
        sizes.iter().map(|(label, len, line)| block(&mut random, label, *len, *line)).collect();
    keys.push(block(&mut random, "ENCRYPTED ", 1_700, 64));
    let header =
        "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n";
    keys.push(block(&mut random, "RSA ", 1_588, 64).replacen("PRIVATE KEY-----", header, 1));
    let pgp = block(&mut random, "PGP ", 3_000, 64).replace("PRIVATE KEY", "PRIVATE KEY BLOCK");
    keys.push(pgp.replacen("-----\n", "-----\n\n", 1));
    keys
}

fn block(random: &mut Rng, label: &str, len: usize, line: usize) -> String {
    let body = text(random, ALPHANUMERIC, len);
    let lines: Vec<&str> = (0..len).step_by(line).map(|at| &body[at..(at + line).min(len)]).collect();
    let kind = format!("{label}PRIVATE KEY");
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}
