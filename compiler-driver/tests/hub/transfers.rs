//! Downloads that are interrupted, resumed, wrong, or made by two at a time.

use std::{
    fs,
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};

use super::{COMMIT, Hub, SIZE, files, server, warnings};
use mlxcel_compiler_driver::{Cancel, Event, ModelSource};

fn ranges(hub: &Hub) -> Vec<Option<String>> {
    let log = hub.server.log().into_iter();
    log.filter(|asked| asked.path.starts_with("/cdn/")).map(|asked| asked.range).collect()
}

fn part(digest: &str) -> String {
    format!("blobs/{digest}.incomplete")
}

/// Checks that the weights are in the cache, and nothing else beside them.
fn assert_whole(hub: &Hub) {
    let path = hub.at(&format!("snapshots/{COMMIT}/model.safetensors"));
    assert!(fs::read(path).unwrap() == files()["model.safetensors"]);
    assert!(!hub.names("blobs").iter().any(|name| name.ends_with(".incomplete")));
}

/// Checks that nothing names the weights.
fn assert_nothing(hub: &Hub) {
    assert!(!hub.names(&format!("snapshots/{COMMIT}")).iter().any(|name| name == "model.safetensors"));
    assert!(!hub.names("blobs").iter().any(|name| name.len() == 64));
    assert!(hub.names("refs").is_empty());
}

#[test]
fn a_connection_that_is_cut_goes_on() {
    let hub = Hub::new();
    hub.set(|state| state.cuts = [300_000; 2].into());
    hub.get("org/model").unwrap();
    let range = |from: usize| Some(format!("bytes={from}-"));
    assert_eq!(ranges(&hub), [None, range(300_000), range(600_000)]);
    assert_whole(&hub);
}

#[test]
fn a_server_that_sends_no_more_is_given_up_and_the_next_run_resumes() {
    let hub = Hub::new();
    hub.set(|state| state.cuts = [400_000, 0, 0, 0].into());
    let text = hub.refusal("org/model");
    let start =
        "error: found the end of model.safetensors of org/model after 400000 bytes, expected 1000000: ";
    assert!(text.starts_with(start), "{text}");
    assert!(text.ends_with("\nhint: run the same command again; it resumes there"), "{text}");
    assert_nothing(&hub);
    let digest = server::sha256(&files()["model.safetensors"]);
    assert_eq!(fs::metadata(hub.at(&part(&digest))).unwrap().len(), 400_000);
    hub.server.log();
    hub.get("org/model").unwrap();
    assert_eq!(ranges(&hub), [Some("bytes=400000-".to_owned())]);
    assert_whole(&hub);
}

#[test]
fn parts_that_do_not_fit_are_thrown_away() {
    let weights = &files()["model.safetensors"];
    let digest = server::sha256(weights);
    // The beginning of another file, a part that is too long, and a server that knows no ranges.
    let cases = [
        (vec![7; 1000], false, vec![Some("bytes=1000-".to_owned()), None]),
        (vec![7; SIZE], false, vec![None]),
        (vec![7; SIZE + 1], false, vec![None]),
        (weights[..1000].to_vec(), true, vec![Some("bytes=1000-".to_owned())]),
    ];
    for (bytes, ignores_ranges, expected) in cases {
        let hub = Hub::new();
        hub.set(|state| state.ignores_ranges = ignores_ranges);
        fs::create_dir_all(hub.at("blobs")).unwrap();
        fs::write(hub.at(&part(&digest)), &bytes).unwrap();
        let (_, events) = hub.get("org/model").unwrap();
        assert_eq!(ranges(&hub), expected, "{} bytes", bytes.len());
        assert_whole(&hub);
        let again = "model.safetensors: what was here of it is not part of it, starting again";
        assert_eq!(warnings(&events).contains(&again), bytes[0] == 7 && bytes.len() <= SIZE);
    }
}

#[test]
fn wrong_bytes_are_refused_and_removed() {
    let hub = Hub::new();
    hub.set(|state| state.corrupt = Some("model.safetensors".into()));
    let mut wrong = files()["model.safetensors"].clone();
    let expected = server::sha256(&wrong);
    wrong[0] ^= 1;
    let found = server::sha256(&wrong);
    assert_eq!(
        hub.refusal("org/model"),
        format!(
            "error: model.safetensors of org/model is sha256 {found}, expected sha256 {expected}, as the hub states; it was \
             removed\n\
             hint: run the command again to download it; if it is still wrong, unset HF_ENDPOINT or name another mirror"
        )
    );
    assert_nothing(&hub);
    assert!(!hub.at(&part(&expected)).exists());
    // Small files are compared too, with git's digest.
    let hub = Hub::new();
    hub.set(|state| state.corrupt = Some("config.json".into()));
    let text = hub.refusal("org/model");
    let expected = server::git_blob(&files()["config.json"]);
    assert!(text.starts_with("error: config.json of org/model is gitBlob "), "{text}");
    assert!(text.contains(&format!(", expected gitBlob {expected}, as the hub states")), "{text}");
    assert!(hub.names("blobs").is_empty());
}

#[test]
fn another_size_is_refused() {
    let hub = Hub::new();
    hub.set(|state| state.other_size = Some(("model.safetensors".into(), 999_999)));
    assert_eq!(
        hub.refusal("org/model"),
        "error: model.safetensors of org/model has 999999 bytes, expected 1000000, as the hub states; it was removed\n\
         hint: run the command again to download it; if it is still wrong, unset HF_ENDPOINT or name another mirror"
    );
    assert_nothing(&hub);
}

#[test]
fn mirrors_that_list_names_alone_state_digests_in_answers() {
    let hub = Hub::new();
    hub.set(|state| state.lists_names = true);
    let (_, events) = hub.get("org/model").unwrap();
    assert!(warnings(&events).is_empty(), "{events:?}");
    assert_whole(&hub);
    assert!(hub.names("blobs").contains(&server::sha256(&files()["model.safetensors"])));
    // What is in the cache is compared with its name.
    let blob = hub.at("blobs").join(server::git_blob(&files()["config.json"]));
    fs::remove_file(&blob).unwrap();
    fs::write(&blob, "{}").unwrap();
    let (_, events) = hub.get("org/model").unwrap();
    assert_eq!(warnings(&events), ["config.json in the cache is damaged: downloading it again"]);
    // Or they state none.
    let hub = Hub::new();
    hub.set(|state| (state.lists_names, state.etag) = (true, Some("../../../../escaped".into())));
    let (_, events) = hub.get("org/model").unwrap();
    assert_eq!(
        warnings(&events).last(),
        Some(&"the hub states no digest of model.safetensors: only its size was compared")
    );
    assert_whole(&hub);
}

#[test]
fn without_digests_a_part_of_another_commit_is_not_resumed() {
    const OTHER: &str = "ffeeddccbbaa99887766554433221100ffeeddcc";
    let hub = Hub::new();
    hub.set(|state| {
        (state.lists_names, state.etag) = (true, Some("none".into()));
        // The first answer is asked for its headers alone.
        state.cuts = [0, 400_000, 0, 0, 0].into();
    });
    let text = hub.refusal("org/model");
    assert!(text.contains("found the end of model.safetensors of org/model after 400000 bytes"), "{text}");
    assert_eq!(fs::metadata(hub.at(&part(&format!("{COMMIT}-model.safetensors")))).unwrap().len(), 400_000);
    // Files of the same sizes with other bytes.
    let mut other = files();
    other.get_mut("model.safetensors").unwrap().iter_mut().for_each(|byte| *byte ^= 0xff);
    let expected = other["model.safetensors"].clone();
    hub.set(|state| {
        state.cuts.clear();
        _ = state.commits.insert(OTHER.into(), other);
        _ = state.revisions.insert("main".into(), OTHER.into());
    });
    hub.server.log();
    hub.get("org/model").unwrap();
    assert_eq!(ranges(&hub), [None, None]);
    assert!(fs::read(hub.at(&format!("snapshots/{OTHER}/model.safetensors"))).unwrap() == expected);
    // The part is one of the first commit's file.
    hub.get(&format!("org/model@{COMMIT}")).unwrap();
    assert_eq!(ranges(&hub), [None, Some("bytes=400000-".to_owned())]);
    assert_whole(&hub);
}

#[test]
fn two_downloads_at_once_are_one() {
    let hub = Hub::new();
    thread::scope(|scope| {
        let runs = [(); 4].map(|()| scope.spawn(|| hub.get("org/model").map(|_| ())));
        runs.into_iter().for_each(|run| run.join().unwrap().unwrap());
    });
    assert_eq!(ranges(&hub), [None], "the weights are downloaded once");
    assert_whole(&hub);
}

#[test]
fn a_server_that_is_silent_keeps_nobody() {
    let mut hub = Hub::new();
    // It takes connections, and answers none.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    hub.settings.endpoint = format!("http://{}", silent.local_addr().unwrap());
    let (cancel, start) = (Cancel::new(), Instant::now());
    let text = thread::scope(|scope| {
        let run = scope.spawn(|| hub.find("org/model", None, true, &cancel));
        let _connection = silent.accept().unwrap();
        thread::sleep(Duration::from_millis(100));
        cancel.cancel();
        run.join().unwrap().unwrap_err()
    });
    assert_eq!(text, "error: cancelled; what was downloaded stays in the cache");
    assert!(start.elapsed() < Duration::from_secs(50));
}

#[test]
fn a_cancelled_download_is_resumed() {
    let hub = Hub::new();
    let cancel = Cancel::new();
    let mut progress = |event| {
        if let Event::Downloading { received, .. } = event
            && received > 300_000
        {
            cancel.cancel();
        }
    };
    let stopped =
        ModelSource::find_or_download("org/model", None, true, &hub.settings, &cancel, &mut progress);
    assert_eq!(stopped.unwrap_err().to_string(), "cancelled; what was downloaded stays in the cache");
    assert_nothing(&hub);
    hub.server.log();
    hub.get("org/model").unwrap();
    let ranges = ranges(&hub);
    assert!(matches!(&ranges[..], [Some(range)] if range != "bytes=0-"), "{ranges:?}");
    assert_whole(&hub);
}

#[test]
fn a_server_cannot_name_files_elsewhere() {
    let mut hostile = files();
    for name in [
        "../../../escaped/config.json",
        "1_../../../escaped/config.json",
        "/escaped.gguf",
        "a/../../../escaped.gguf",
    ] {
        hostile.insert(name.to_owned(), b"{}".to_vec());
    }
    let hub = Hub::of(hostile);
    hub.get("org/model").unwrap();
    assert_eq!(
        hub.names(&format!("snapshots/{COMMIT}")),
        ["config.json", "model.safetensors", "tokenizer.json"]
    );
    let index = r#"{ "weight_map": { "a": "../../../../escaped.safetensors" } }"#;
    let mut hostile = files();
    hostile.remove("model.safetensors");
    hostile.insert("model.safetensors.index.json".into(), index.into());
    let text = Hub::of(hostile).refusal("org/model");
    assert!(
        text.contains(
            "model.safetensors.index.json: shard `../../../../escaped.safetensors`, expected the name"
        ),
        "{text}"
    );
    let hub = Hub::new();
    hub.set(|state| _ = state.revisions.insert("main".into(), "../../../x".into()));
    hub.set(|state| _ = state.commits.insert("../../../x".into(), files()));
    assert_eq!(
        hub.refusal("org/model"),
        "error: cannot read what http://hub answers about org/model: found commit `../../../x`, expected 40 digits\n\
         hint: check that HF_ENDPOINT names a hub"
    );
    assert!(!hub.home.path().join("hub").exists());
}
