//! Puts libtorch's folder into the binary's rpath, so that it starts without LD_LIBRARY_PATH.
//! `DEP_TCH_LIBTORCH_LIB` is visible only because this crate depends on torch-sys (links = "tch") directly.
fn main() {
    if let Some(lib) = std::env::var_os("DEP_TCH_LIBTORCH_LIB") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.to_string_lossy());
    }
}
