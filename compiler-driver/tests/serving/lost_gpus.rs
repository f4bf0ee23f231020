//! Servers whose GPU is lost in the middle of a stream, on the emulated driver.

use std::{fs, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    http::{ask, get},
    server::{Server, until},
};
use crate::{
    emulated::{driver, for_gpu},
    real::{self, Built, Fixture},
};

/// What a server's step at the start launches, and each token of an answer.
const LAUNCHES: usize = 15;
/// The answer to the token 63.
const ANSWER: &str = " 32 76 76 76 117";
/// What is streamed before the launch that [`in_third_step`] names.
const BEFORE: [&str; 2] = [" 32", " 76"];

/// Returns a launch in the middle of the third token of the first answer of the first GPU.
fn in_third_step() -> String {
    format!("0:{}", 3 * LAUNCHES + 5)
}

/// A server of a fixture, whose tokens are numbers.
struct OnGpu {
    server: Server,
    _bundle: Built,
    _weights: TempDir,
}

impl OnGpu {
    fn start(device: &str, variables: &[(&str, &str)]) -> Self {
        let fixture = Fixture::find("gqa");
        let (bundle, weights) = (real::built(&for_gpu(&fixture, "cuda")), tempfile::tempdir().unwrap());
        let file = "model.safetensors";
        fs::copy(fixture.folder.join(file), weights.path().join(file)).unwrap();
        let words: serde_json::Map<_, _> = (0..128).map(|id| (format!(" {id}"), json!(id))).collect();
        let model = json!({ "type": "WordLevel", "vocab": words, "unk_token": " 0" });
        let tokenizer = json!({ "version": "1.0", "model": model, "decoder": { "type": "Fuse" } });
        fs::write(weights.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
        let driver = driver().display().to_string();
        let variables = [variables, &[("LD_LIBRARY_PATH", driver.as_str())]].concat();
        let arguments = ["--device", device, "--weights", weights.path().to_str().unwrap()];
        let server = Server::with(bundle.bundle.path(), "127.0.0.1:0", &arguments, &variables);
        Self { server, _bundle: bundle, _weights: weights }
    }

    /// Asks for an answer, and returns its texts and how it ended.
    fn answer(&self) -> (Vec<String>, Option<Value>) {
        let body = json!({
            "prompt": [63], "max_tokens": 5, "temperature": 0, "ignore_eos": true, "stream": true,
        });
        let reply = ask(self.server.address, "POST", "/v1/completions", &body.to_string()).unwrap();
        let mut events =
            if reply.status == 200 { reply.events() } else { reply.json().map(|one| vec![one]) }.unwrap();
        let error = events.pop_if(|event| event.get("error").is_some());
        let text = |event: &Value| event["choices"][0]["text"].as_str().unwrap_or_default().to_owned();
        let texts = events.iter().map(text).filter(|text| !text.is_empty());
        (texts.collect(), error)
    }

    /// Checks that the server says that it cannot answer, to who asks as well as to who watches it.
    fn is_stopped(&self, error: &Value) {
        let stopped = json!({ "status": "unavailable", "stopped": ["demo"] });
        assert_eq!(get(self.server.address, "/health/ready").unwrap(), (503, stopped));
        assert_eq!(get(self.server.address, "/health/live").unwrap().0, 200);
        assert_eq!(self.answer(), (vec![], Some(error.clone())));
    }

    /// Lets the server load its bundle again.
    fn reload(&self) {
        let id = self.server.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    }

    fn is_ready(&self) -> Option<()> {
        (get(self.server.address, "/health/ready").unwrap().0 == 200).then_some(())
    }

    fn device(&self) -> String {
        let (_, models) = get(self.server.address, "/v1/models").unwrap();
        models["data"][0]["device"].as_str().unwrap_or_else(|| panic!("{models}")).to_owned()
    }
}

/// Returns the error of a device that was lost, as clients get it.
fn lost(device: &str, cause: &str) -> Value {
    let message = format!("{device}, Emulator is lost, expected a device that answers: {cause}");
    json!({ "error": { "message": message, "type": "server_error", "param": null, "code": "device_lost" } })
}

const XID: &str = "aborted: CUDA error 'CUDA_ERROR_LAUNCH_FAILED' (719): unspecified launch failure";
const RESET: &str = "internal: CUDA error 'CUDA_ERROR_CONTEXT_IS_DESTROYED' (709): context is destroyed";

#[test]
fn a_server_goes_on_on_another_gpu() {
    let variables = [("MLXCEL_EMULATED_DEVICES", "2"), ("MLXCEL_EMULATED_LOST", &in_third_step())];
    let mut on_gpu = OnGpu::start("auto", &variables);
    let error = lost("cuda:0", XID);
    assert_eq!(on_gpu.answer(), (BEFORE.map(str::to_owned).to_vec(), Some(error.clone())));
    on_gpu.is_stopped(&error);
    on_gpu.reload();
    until("it is ready", || on_gpu.is_ready());
    assert_eq!((on_gpu.answer().0.concat().as_str(), on_gpu.device().as_str()), (ANSWER, "cuda:1, Emulator"));
    assert!(on_gpu.server.terminate().success());
}

#[test]
fn a_server_goes_on_after_a_reset() {
    let mut on_gpu = OnGpu::start("cuda", &[("MLXCEL_EMULATED_RESET", &in_third_step())]);
    let error = lost("cuda", RESET);
    assert_eq!(on_gpu.answer(), (BEFORE.map(str::to_owned).to_vec(), Some(error.clone())));
    on_gpu.is_stopped(&error);
    on_gpu.reload();
    until("it is ready", || on_gpu.is_ready());
    assert_eq!(on_gpu.answer().0.concat(), ANSWER);
    assert!(on_gpu.server.terminate().success());
}

#[test]
fn a_server_without_another_gpu_says_so_and_ends_when_asked() {
    let mut on_gpu = OnGpu::start("cuda", &[("MLXCEL_EMULATED_LOST", &format!("0:{}", LAUNCHES + 5))]);
    let error = lost("cuda", XID);
    assert_eq!(on_gpu.answer(), (vec![], Some(error.clone())));
    on_gpu.reload();
    let words = "cannot use the device cuda: unknown: CUDA error 'CUDA_ERROR_DEVICE_UNAVAILABLE' (46): ";
    until(words, || on_gpu.server.notes().contains(words).then_some(()));
    on_gpu.is_stopped(&error);
    assert!(on_gpu.server.terminate().success());
}
