//! Relocatable ELF objects, as C compilers write them.

use object::{
    Architecture, Endianness, FileKind, Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _,
    SectionKind, SymbolKind,
    elf::{SHT_SYMTAB, STV_HIDDEN},
    read::elf::{ElfFile64, SectionHeader as _},
};

use super::problem::KernelError;

/// What compilers reference and linkers make.
const OF_LINKERS: [&str; 1] = ["_GLOBAL_OFFSET_TABLE_"];

/// What an object defines and what it needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Symbols {
    /// LLVM's name of its architecture.
    pub(super) arch: &'static str,
    /// The functions that others can call.
    pub(super) functions: Vec<String>,
    /// What no other object may define: its global symbols, without those that linkers merge.
    pub(super) strong: Vec<String>,
    /// Everything that others can use.
    pub(super) defined: Vec<String>,
    /// What others must define.
    pub(super) undefined: Vec<String>,
}

impl Symbols {
    /// Reads the symbols of an object.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, KernelError> {
        let file = match FileKind::parse(bytes) {
            Ok(FileKind::Elf64) => parsed(bytes)?,
            Ok(FileKind::Elf32) => return Err(KernelError::Form { found: "a 32-bit ELF file" }),
            _ => return Err(KernelError::Form { found: other_form(bytes) }),
        };
        match file.kind() {
            ObjectKind::Relocatable => {}
            _ => return Err(KernelError::Form { found: "a linked program or library" }),
        }
        let arch = match (file.architecture(), file.endianness()) {
            (Architecture::X86_64, Endianness::Little) => "x86_64",
            (Architecture::Aarch64, Endianness::Little) => "aarch64",
            (other, order) => {
                let order = if order == Endianness::Big { ", big-endian" } else { "" };
                return Err(KernelError::Architecture { found: format!("{other:?}{order}").to_lowercase() });
            }
        };
        check_sections(&file)?;
        let mut symbols = Self { arch, ..Self::default() };
        for symbol in file.symbols().filter(object::ObjectSymbol::is_global) {
            let name = symbol.name().map_err(damaged)?.to_owned();
            if symbol.is_undefined() {
                let is_needed = !name.is_empty() && !OF_LINKERS.contains(&name.as_str());
                symbols.undefined.extend(is_needed.then_some(name));
                continue;
            }
            symbols
                .functions
                .extend((symbol.kind() == SymbolKind::Text && is_name(&name)).then(|| name.clone()));
            symbols.strong.extend((!symbol.is_weak()).then(|| name.clone()));
            symbols.defined.push(name);
        }
        Ok(symbols)
    }
}

/// Hides the symbols of an object from everything that it will not be linked with.
///
/// The linker calls functions that others could replace by way of a table of addresses. IREE's loader of executables leaves that
/// table as it is on ARM, and the first call would crash.
pub(super) fn hide(bytes: &mut [u8]) -> Result<(), KernelError> {
    const BYTES_OF_SYMBOL: usize = 24;
    /// Where a symbol has its visibility, in the lowest two bits.
    const VISIBILITY: usize = 5;
    let file = parsed(bytes)?;
    let table =
        file.sections().find(|section| section.elf_section_header().sh_type(file.endian()) == SHT_SYMTAB);
    let Some((start, _)) = table.and_then(|section| section.file_range()) else { return Ok(()) };
    let visible = file.symbols().filter(|symbol| symbol.is_global() && !symbol.is_undefined());
    let places: Vec<usize> =
        visible.map(|symbol| start as usize + symbol.index().0 * BYTES_OF_SYMBOL + VISIBILITY).collect();
    for place in places {
        bytes[place] = bytes[place] & !0b11 | STV_HIDDEN.0;
    }
    Ok(())
}

/// Refuses what nothing does where bundles run: to start a program, to make variables of a thread, and to compile.
fn check_sections(file: &ElfFile64<'_, Endianness>) -> Result<(), KernelError> {
    for section in file.sections() {
        let name = section.name().map_err(damaged)?;
        let is_one_of = |names: &[&str]| names.iter().any(|start| name.starts_with(start));
        if is_one_of(&[".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors"]) {
            return Err(KernelError::Initializers);
        }
        if is_one_of(&[".gnu.lto_"]) {
            return Err(KernelError::Form { found: "an object of GCC's link-time optimization, -flto" });
        }
        if matches!(section.kind(), SectionKind::Tls | SectionKind::UninitializedTls) {
            return Err(KernelError::ThreadLocal);
        }
    }
    Ok(())
}

fn parsed(bytes: &[u8]) -> Result<ElfFile64<'_, Endianness>, KernelError> {
    ElfFile64::parse(bytes).map_err(damaged)
}

fn damaged(error: object::Error) -> KernelError {
    KernelError::Damaged { problem: error.to_string() }
}

/// Returns whether calls can name a function.
fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'))
        && !name.starts_with(|c: char| !(c.is_ascii_alphabetic() || c == '_'))
        && !name.is_empty()
}

/// Returns what a file is that is no ELF file.
fn other_form(bytes: &[u8]) -> &'static str {
    const FORMS: [(&[u8], &str); 6] = [
        (b"!<arch>\n", "a static library"),
        (b"BC\xc0\xde", "LLVM's bitcode, as -flto makes it"),
        (b"\xcf\xfa\xed\xfe", "an object for macOS"),
        (b"\xca\xfe\xba\xbe", "an object for macOS"),
        (b"\x64\x86", "an object for Windows"),
        (b"\x50\xed\x55\xba", "a fat binary of CUDA"),
    ];
    if bytes.is_empty() {
        return "an empty file";
    }
    FORMS
        .iter()
        .find(|(start, _)| bytes.starts_with(start))
        .map_or("a file of another kind", |(_, form)| form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_objects_have_functions() {
        for object in mlxcel_emitter::objects().filter(|object| object.name.ends_with(".o")) {
            let symbols = Symbols::read(&object.bytes).unwrap();
            assert!(
                !symbols.functions.is_empty() && symbols.undefined.is_empty(),
                "{}: {symbols:?}",
                object.name
            );
            assert!(object.name.contains(symbols.arch), "{}", object.name);
        }
    }

    #[test]
    fn our_own_objects_are_hidden() {
        for object in mlxcel_emitter::objects().filter(|object| object.name.ends_with(".o")) {
            let mut hidden = object.bytes.to_vec();
            hide(&mut hidden).unwrap();
            assert!(*object.bytes == *hidden, "{}", object.name);
        }
    }

    #[test]
    fn other_files_are_named() {
        let form = |bytes: &[u8]| Symbols::read(bytes).unwrap_err();
        let is = |found| KernelError::Form { found };
        assert_eq!(form(b""), is("an empty file"));
        assert_eq!(form(b"!<arch>\nx"), is("a static library"));
        assert_eq!(form(b"int main() {}"), is("a file of another kind"));
        assert_eq!(form(b"BC\xc0\xde0123456789abcdef"), is("LLVM's bitcode, as -flto makes it"));
        let linked = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(form(&linked), is("a linked program or library"));
    }

    #[test]
    fn damaged_objects_are_refused() {
        let object = mlxcel_emitter::objects().find(|object| object.name.ends_with("-aarch64.o")).unwrap();
        for length in [64, 100, object.bytes.len() / 2, object.bytes.len() - 1] {
            let error = Symbols::read(&object.bytes[..length]).unwrap_err();
            assert!(matches!(error, KernelError::Damaged { .. }), "{length}: {error}");
        }
        let mut other = object.bytes.to_vec();
        other[18] = 243;
        assert_eq!(Symbols::read(&other), Err(KernelError::Architecture { found: "riscv64".into() }));
    }
}
