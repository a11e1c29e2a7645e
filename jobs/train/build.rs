//! Puts libtorch's folder into the binary's rpath, so that it starts without LD_LIBRARY_PATH.
//! A libtorch that an image puts beside the programs comes first.
//! `DEP_TCH_LIBTORCH_LIB` is visible only because this crate depends on torch-sys (links = "tch") directly.
fn main() {
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/../lib/libtorch");
    if let Some(lib) = std::env::var_os("DEP_TCH_LIBTORCH_LIB") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.to_string_lossy());
    }
}
