//! A local registry, Debian's docker-registry.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A running registry. Dropping it ends it.
pub struct Registry {
    child: Child,
    pub port: u16,
    root: PathBuf,
}

/// Finds docker-registry on the PATH, or where `cargo xtask setup` unpacks it.
fn docker_registry() -> PathBuf {
    let toolchain = env::var_os("MLXCEL_TOOLCHAIN").map(PathBuf::from);
    let toolchain = toolchain.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.toolchain"));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([toolchain.join("docker-registry/usr/bin")]);
    let mut programs = folders.map(|folder| folder.join("docker-registry"));
    programs.find(|program| program.is_file()).expect("docker-registry is missing: run `cargo xtask setup`")
}

impl Registry {
    /// Starts a registry, with basic authentication if `password`.
    pub fn start(folder: &Path, password: bool) -> Self {
        let program = docker_registry();
        let root = folder.join("registry");
        let mut config = format!(
            "version: 0.1\nlog:\n  level: info\n  accesslog:\n    disabled: true\nstorage:\n  filesystem:\n    \
             rootdirectory: {}\nhttp:\n  addr: 127.0.0.1:0\n",
            root.display()
        );
        if password {
            let users = folder.join("htpasswd");
            fs::write(&users, HTPASSWD).unwrap();
            config += &format!("auth:\n  htpasswd:\n    realm: test\n    path: {}\n", users.display());
        }
        let file = folder.join("registry.yml");
        fs::write(&file, config).unwrap();
        let log = folder.join("registry.log");
        let stderr = fs::File::create(&log).unwrap();
        let child = Command::new(program)
            .arg("serve")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut registry = Self { child, port: 0, root };
        let start = Instant::now();
        loop {
            let log = fs::read_to_string(&log).unwrap();
            if let Some(port) = port(&log) {
                registry.port = port;
                return registry;
            }
            assert!(registry.child.try_wait().unwrap().is_none(), "docker-registry has ended: {log}");
            assert!(start.elapsed() < Duration::from_secs(60), "docker-registry does not listen: {log}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn reference(&self, name: &str) -> String {
        format!("localhost:{}/{name}", self.port)
    }

    /// Finds the file in which the registry keeps these bytes.
    pub fn blob(&self, bytes: &[u8]) -> PathBuf {
        let found =
            Command::new("find").arg(&self.root).args(["-name", "data", "-type", "f"]).output().unwrap();
        let paths = String::from_utf8(found.stdout).unwrap();
        paths.lines().map(PathBuf::from).find(|path| fs::read(path).unwrap() == bytes).expect("the blob")
    }
}

/// Finds the port in a registry's log, once it listens. It takes a free one itself, so that nobody else takes that first.
fn port(log: &str) -> Option<u16> {
    log.split_once("listening on 127.0.0.1:")?.1.split_once('"')?.0.parse().ok()
}

/// The user `somebody` with the password `secret`.
const HTPASSWD: &str = "somebody:$2b$05$tWZ.IAOU4jybcXLUV3UaeuQ2eMFCpv0TZUiaarW2oswJs4X1CGKAm\n";

impl Drop for Registry {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
