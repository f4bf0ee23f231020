//! The cache that other programs share.

use std::fs;

use super::{COMMIT, Hub, SIZE, files, server, warnings};
use mlxcel_compiler_driver::{Cancel, Event, ModelSource};

#[test]
fn a_download_has_the_layout_of_huggingface_hub() {
    let hub = Hub::new();
    let (snapshot, events) = hub.get("org/model").unwrap();
    assert_eq!(
        (snapshot.folder(), snapshot.commit()),
        (hub.at(&format!("snapshots/{COMMIT}")).as_path(), COMMIT)
    );
    assert_eq!(hub.names(""), ["blobs", "refs", "snapshots"]);
    // Nothing of what a build does not read.
    let wanted = ["config.json", "model.safetensors", "tokenizer.json"];
    assert_eq!(hub.names(&format!("snapshots/{COMMIT}")), wanted);
    assert_eq!(fs::read_to_string(hub.at("refs/main")).unwrap(), COMMIT);
    let mut digests = Vec::new();
    for name in wanted {
        let bytes = &files()[name];
        let digest = if name.ends_with("json") { server::git_blob(bytes) } else { server::sha256(bytes) };
        let link = fs::read_link(snapshot.folder().join(name)).unwrap();
        assert_eq!(link.to_str().unwrap(), format!("../../blobs/{digest}"));
        assert_eq!(fs::read(snapshot.folder().join(name)).unwrap(), *bytes);
        digests.push(digest);
    }
    digests.sort();
    assert_eq!(hub.names("blobs"), digests);
    // The small ones first, because they may be refused.
    assert_eq!(hub.asked(), ["config.json", "tokenizer.json", "model.safetensors"]);
    let fetched = |cached, downloaded| Event::Fetched {
        model: "org/model".into(),
        commit: COMMIT.into(),
        cached,
        downloaded,
    };
    assert_eq!(events.last(), Some(&fetched(0, 3)));
    let mut received = events.iter().filter_map(|event| match event {
        Event::Downloading { file, received, size } if file == "model.safetensors" => {
            Some((*received, *size))
        }
        _ => None,
    });
    assert_eq!(received.next_back(), Some((SIZE as u64, SIZE as u64)));
    assert!(warnings(&events).is_empty(), "{events:?}");

    // What is here is not asked for again, and offline nothing is asked at all.
    let (again, events) = hub.get("org/model").unwrap();
    assert_eq!((again.folder(), events.last()), (snapshot.folder(), Some(&fetched(3, 0))));
    assert!(hub.asked().is_empty());
    let mut hub = hub;
    hub.settings.offline = true;
    let (offline, _) = hub.get("org/model").unwrap();
    assert_eq!(offline.folder(), snapshot.folder());
    hub.get(&format!("org/model@{COMMIT}")).unwrap();
    assert!(hub.server.log().is_empty());
}

#[test]
fn weights_that_are_not_needed_are_not_downloaded() {
    let hub = Hub::new();
    hub.find("org/model", None, false, &Cancel::new()).unwrap();
    assert_eq!(hub.asked(), ["config.json", "tokenizer.json"]);
    // The headers of quantized weights say how they are stored.
    let mut quantized = files();
    let config = String::from_utf8(quantized["config.json"].clone()).unwrap();
    let scheme = r#"{ "quantization_config": { "quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [16, 16], "activation_scheme": "dynamic" },"#;
    quantized.insert("config.json".into(), config.replacen('{', scheme, 1).into_bytes());
    let hub = Hub::of(quantized);
    hub.find("org/model", None, false, &Cancel::new()).unwrap();
    assert_eq!(hub.asked(), ["config.json", "tokenizer.json", "model.safetensors"]);
}

#[test]
fn revisions_share_what_they_have_in_common() {
    let hub = Hub::new();
    let tagged = "f".repeat(40);
    hub.set(|state| {
        let mut other = files();
        other.insert("config.json".into(), b"{ }".to_vec());
        state.commits.insert(tagged.clone(), other);
        state.revisions.insert("v1.0".into(), tagged.clone());
        state.revisions.insert("refs/pr/1".into(), tagged.clone());
    });
    hub.get("org/model").unwrap();
    hub.server.log();
    let (snapshot, _) = hub.get("org/model@v1.0").unwrap();
    assert_eq!(snapshot.commit(), tagged);
    assert_eq!(fs::read_to_string(snapshot.folder().join("config.json")).unwrap(), "{ }");
    assert_eq!(hub.asked(), ["config.json"], "the weights are those of main");
    let by_flag = hub.find("org/model", Some("refs/pr/1"), true, &Cancel::new()).unwrap().0;
    assert_eq!(by_flag.folder(), snapshot.folder());
    assert_eq!(fs::read_to_string(hub.at("refs/refs/pr/1")).unwrap(), tagged);
    // A commit is no reference.
    hub.get(&format!("org/model@{tagged}")).unwrap();
    assert_eq!(hub.names("refs"), ["main", "refs", "v1.0"]);
    // `main` moves on.
    hub.set(|state| _ = state.revisions.insert("main".into(), tagged.clone()));
    assert_eq!(hub.get("org/model").unwrap().0.commit(), tagged);
    assert_eq!(fs::read_to_string(hub.at("refs/main")).unwrap(), tagged);
}

#[test]
fn shards_are_those_that_the_index_lists() {
    let mut all = files();
    let weights = all.remove("model.safetensors").unwrap();
    let index = r#"{ "weight_map": { "a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors" } }"#;
    all.insert("model.safetensors.index.json".into(), index.into());
    all.insert("model-00001-of-00002.safetensors".into(), weights[..500].to_vec());
    all.insert("model-00002-of-00002.safetensors".into(), weights[500..].to_vec());
    all.insert("consolidated.safetensors".into(), weights);
    let mut hub = Hub::of(all);
    let (snapshot, _) = hub.get("org/model").unwrap();
    let shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    let names = hub.names(&format!("snapshots/{COMMIT}"));
    assert_eq!(
        names,
        ["config.json", shards[0], shards[1], "model.safetensors.index.json", "tokenizer.json"]
    );
    // Offline, a shard that is missing is named.
    fs::remove_file(snapshot.folder().join(shards[1])).unwrap();
    hub.settings.offline = true;
    assert!(hub.refusal("org/model").contains("found no model-00002-of-00002.safetensors of org/model"));
}

#[test]
fn a_gguf_file_comes_with_its_other_parts_alone() {
    let names = ["q/m-00001-of-00002.gguf", "q/m-00002-of-00002.gguf", "other one.gguf"];
    let parts = names.iter().map(|name| ((*name).to_owned(), name.as_bytes().to_vec()));
    let hub = Hub::of(parts.chain(files()).collect());
    hub.get("org/model/q/m-00002-of-00002.gguf").unwrap();
    assert_eq!(
        hub.names(&format!("snapshots/{COMMIT}/q")),
        ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]
    );
    hub.get("org/model/other one.gguf").unwrap();
    assert_eq!(hub.names(&format!("snapshots/{COMMIT}")), ["other one.gguf", "q"]);
}

#[test]
fn damaged_files_in_the_cache_are_noticed() {
    let mut hub = Hub::new();
    let (snapshot, _) = hub.get("org/model").unwrap();
    let digest = server::sha256(&files()["model.safetensors"]);
    let damage = || {
        fs::remove_file(hub.at(&format!("blobs/{digest}"))).unwrap();
        fs::write(hub.at(&format!("blobs/{digest}")), "damaged").unwrap();
    };
    damage();
    hub.server.log();
    let (_, events) = hub.get("org/model").unwrap();
    assert_eq!(warnings(&events), ["model.safetensors in the cache is damaged: downloading it again"]);
    assert_eq!(hub.asked(), ["model.safetensors"]);
    assert_eq!(fs::read(snapshot.folder().join("model.safetensors")).unwrap(), files()["model.safetensors"]);
    damage();
    hub.settings.offline = true;
    let found = server::sha256(b"damaged");
    assert_eq!(
        hub.refusal("org/model"),
        format!(
            "error: …/hub/models--org--model/snapshots/{COMMIT}/model.safetensors is sha256 {found}, expected sha256 {digest}, \
             its name in the cache\n\
             hint: run the command once without --offline and HF_HUB_OFFLINE, which downloads it again"
        )
    );
}

#[test]
fn a_link_to_a_blob_that_is_gone_is_replaced() {
    let hub = Hub::new();
    let (snapshot, _) = hub.get("org/model").unwrap();
    let digest = server::sha256(&files()["model.safetensors"]);
    fs::remove_file(hub.at(&format!("blobs/{digest}"))).unwrap();
    hub.get("org/model").unwrap();
    assert_eq!(fs::read(snapshot.folder().join("model.safetensors")).unwrap(), files()["model.safetensors"]);
}

#[test]
fn folders_and_presets_come_before_the_hub() {
    let hub = Hub::new();
    let find = |text: &str, revision| {
        ModelSource::find_or_download(text, revision, true, &hub.settings, &Cancel::new(), &mut |_| {})
    };
    assert!(matches!(find("gpt2", None), Ok(ModelSource::Preset(_))));
    // The tests run in the crate's folder.
    assert!(matches!(find("tests/hub", None), Ok(ModelSource::Folder(_))));
    for path in ["./org/model", "org/model/", "a/b/c"] {
        let error = find(path, None).unwrap_err().to_string();
        assert!(error.starts_with(&format!("found no folder {path}, ")), "{error}");
    }
    for local in ["gpt2", "tests/hub"] {
        assert_eq!(
            find(local, Some("main")).unwrap_err().to_string(),
            format!(
                "found --revision for `{local}`, expected it with a repository of the hub, as in org/name\n\
                 hint: leave out --revision for presets, folders and files"
            )
        );
    }
    for (name, revision) in [("org/model@v1", "v2"), ("org/model", "../x")] {
        let error = find(name, Some(revision)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("found --revision `{revision}` for {name}, ")), "{error}");
    }
    assert!(hub.server.log().is_empty());
}
