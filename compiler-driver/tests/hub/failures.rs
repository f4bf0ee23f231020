//! What each refusal says.

use super::{COMMIT, Hub, files, warnings};

/// Checks that nothing but locks was made.
fn assert_no_model(hub: &Hub) {
    assert!(hub.names("refs").is_empty() && hub.names("snapshots").is_empty(), "{:?}", hub.names(""));
}

#[test]
fn private_repositories_need_a_token() {
    let mut hub = Hub::new();
    hub.set(|state| state.token = Some("hf_secret".into()));
    assert_eq!(
        hub.refusal("org/model"),
        "error: http://hub refuses org/model without a token, expected a public repository or one that a token may read\n\
         hint: check the name: a repository that does not exist is refused too\n\
         hint: log in with `hf auth login`, or set HF_TOKEN to a token of http://hub/settings/tokens"
    );
    hub.settings.token = Some("hf_wrong".into());
    assert_eq!(
        hub.refusal("org/model"),
        "error: http://hub refuses the token for org/model, expected a valid one\n\
         hint: `hf auth whoami` checks it; it is that of HF_TOKEN, otherwise the file token in HF_HOME"
    );
    assert_no_model(&hub);
    hub.settings.token = Some("hf_secret".into());
    hub.server.log();
    hub.get("org/model").unwrap();
    for asked in hub.server.log() {
        let expected = (!asked.path.starts_with("/cdn/")).then(|| "Bearer hf_secret".to_owned());
        assert_eq!(asked.authorization, expected, "{}: another host must not see the token", asked.path);
    }
}

#[test]
fn gated_repositories_list_their_files_and_refuse_them() {
    for status in [401, 403] {
        let hub = Hub::new();
        hub.set(|state| state.refuses_files = Some((status, "GatedRepo")));
        assert_eq!(
            hub.refusal("org/model"),
            "error: org/model is gated, expected an account that has accepted its terms\n\
             hint: accept them at http://hub/org/model, then log in with `hf auth login` or set HF_TOKEN"
        );
        assert_no_model(&hub);
    }
    let hub = Hub::new();
    hub.set(|state| state.refuses_list = Some((403, "")));
    assert_eq!(
        hub.refusal("org/model"),
        "error: http://hub forbids org/model, expected a token that may read it\n\
         hint: give the token read access to the repository at http://hub/settings/tokens"
    );
}

#[test]
fn what_the_hub_does_not_have_is_named() {
    let hub = Hub::new();
    assert_eq!(
        hub.refusal("org/other"),
        "error: found no folder org/other here and no repository org/other at http://hub, expected one of them\n\
         hint: look for it with `hf models ls --search other`; `mlxcel-compile models` lists the presets"
    );
    assert_eq!(
        hub.refusal("org/model@v2"),
        "error: found no revision v2 of org/model at http://hub, expected a branch, a tag or a commit\n\
         hint: http://hub/org/model/commits/main lists commits; leave out the revision for the newest"
    );
    assert_eq!(
        hub.refusal("org/model/q4.gguf"),
        format!(
            "error: found no q4.gguf in org/model at {COMMIT}, expected a checkpoint in Hugging Face's format\n\
             hint: choose a repository that transformers loads; org/model is another kind"
        )
    );
    assert_no_model(&hub);
    hub.set(|state| state.refuses_files = Some((404, "EntryNotFound")));
    assert_eq!(
        hub.refusal("org/model"),
        "error: found no config.json of org/model at http://hub, which lists it, expected its bytes\n\
         hint: run the command again"
    );
}

#[test]
fn weights_in_other_forms_are_named() {
    let mut all = files();
    all.remove("model.safetensors");
    let hub = Hub::of(all.clone());
    assert_eq!(
        hub.refusal("org/model"),
        format!(
            "error: found no safetensors in org/model at {COMMIT}, but onnx/model.onnx, pytorch_model.bin, expected \
             model.safetensors or model.safetensors.index.json\n\
             hint: convert them with transformers' save_pretrained(FOLDER), and pass that folder to --model"
        )
    );
    assert!(hub.names("refs").is_empty());
    all.insert("model-q4.gguf".into(), b"GGUF".to_vec());
    let hub = Hub::of(all.clone());
    let text = hub.refusal("org/model");
    assert!(text.ends_with("\nhint: pass --model org/model/model-q4.gguf to use that GGUF file"), "{text}");
    all.remove("config.json");
    assert_eq!(
        Hub::of(all).refusal("org/model"),
        format!(
            "error: found no config.json in org/model at {COMMIT}, expected one such as model-q4.gguf\n\
             hint: pass --model org/model/model-q4.gguf"
        )
    );
}

#[test]
fn a_hub_that_cannot_be_reached_is_named() {
    let mut hub = Hub::new();
    // A port where nothing listens.
    let open = std::mem::replace(&mut hub.settings.endpoint, "http://127.0.0.1:1".to_owned());
    assert_eq!(
        hub.refusal("org/model"),
        "error: cannot reach http://hub for org/model, which is no folder here: io: Connection refused (os error 111)\n\
         hint: check the network, HTTPS_PROXY and HF_ENDPOINT; what is in the cache is found with --offline"
    );
    assert_no_model(&hub);
    // A model that is here needs no hub.
    let closed = std::mem::replace(&mut hub.settings.endpoint, open);
    let (online, _) = hub.get("org/model").unwrap();
    hub.settings.endpoint = closed;
    let (offline, events) = hub.get("org/model").unwrap();
    assert_eq!(offline.folder(), online.folder());
    let expected = format!(": using org/model as it is in the cache, at {COMMIT}");
    assert!(warnings(&events)[0].ends_with(&expected), "{events:?}");
}

#[test]
fn offline_nothing_is_asked() {
    let mut hub = Hub::new();
    hub.settings.offline = true;
    assert_eq!(
        hub.refusal("org/model"),
        "error: found no revision main of org/model in …/hub, and no such folder here, expected it in the cache, because \
         --offline or HF_HUB_OFFLINE allows no download\n\
         hint: run the command once without them, or `hf download org/model`"
    );
    assert!(hub.server.log().is_empty() && !hub.home.path().join("hub").exists());
    // Small files are there, weights are not.
    hub.settings.offline = false;
    hub.find("org/model", None, false, &mlxcel_compiler_driver::Cancel::new()).unwrap();
    hub.settings.offline = true;
    let text = hub.refusal("org/model");
    assert!(text.starts_with("error: found no safetensors of org/model in …/hub"), "{text}");
    hub.settings.cache = None;
    assert_eq!(
        hub.refusal("org/model"),
        "error: found no folder for the hub's cache, expected HF_HOME or HOME to name one\n\
         hint: export HF_HOME=FOLDER"
    );
}

#[test]
fn a_hub_that_is_busy_is_asked_again() {
    let hub = Hub::new();
    hub.set(|state| state.refuses_files = Some((503, "")));
    assert_eq!(
        hub.refusal("org/model"),
        "error: http://hub answers org/model with status 503, expected 200\n\
         hint: it has a problem: run the command again later; what was downloaded is kept"
    );
    assert_eq!(hub.asked(), ["config.json"; 4]);
    hub.set(|state| state.refuses_list = Some((429, "")));
    assert!(hub.refusal("org/model").contains("it limits requests: wait some minutes"));
}
