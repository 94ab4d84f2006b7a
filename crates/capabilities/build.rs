//! Looks for the capabilities once, so that tests without theirs are compiled as ignored.

#[allow(dead_code, unreachable_pub, reason = "the library uses the rest")]
#[path = "src/capability.rs"]
mod capability;

use capability::Capability;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/capability.rs");
    for variable in [capability::WIRE_VARIABLE, "XDG_CACHE_HOME"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    for capability in Capability::ALL {
        let missing =
            capability.find().err().map(|missing| missing.to_string().replace('\n', " ")).unwrap_or_default();
        println!("cargo::rustc-env=LLM_DO_MISSING_{}={missing}", capability.as_str().to_uppercase());
    }
}
