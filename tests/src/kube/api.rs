//! The API server: discovery, and objects in memory.

use super::State;
use axum::body::Bytes;
use axum::http::{Method, StatusCode, Uri};
use axum::{Json, Router, extract};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

type Group = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Group, version, and the plural and kind of what it serves.
const SERVED: [Group; 6] = [
    ("", "v1", &[("configmaps", "ConfigMap"), ("serviceaccounts", "ServiceAccount"), ("pods", "Pod")]),
    ("batch", "v1", &[("jobs", "Job"), ("cronjobs", "CronJob")]),
    ("apps", "v1", &[("deployments", "Deployment")]),
    ("networking.k8s.io", "v1", &[("networkpolicies", "NetworkPolicy")]),
    ("rbac.authorization.k8s.io", "v1", &[("roles", "Role"), ("rolebindings", "RoleBinding")]),
    ("argoproj.io", "v1alpha1", &[("workflows", "Workflow")]),
];

/// Starts it on a free port.
pub async fn serve(state: Arc<Mutex<State>>) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let router = Router::new().fallback(answer).with_state(state);
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

async fn answer(
    extract::State(state): extract::State<Arc<Mutex<State>>>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> (StatusCode, Json<Value>) {
    let path: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
    if let Some(found) = discovery(&path) {
        return (StatusCode::OK, Json(found));
    }
    let place = path.iter().position(|part| *part == "namespaces").map(|at| &path[at + 2..]);
    let mut state = state.lock().expect("nobody panicked with it");
    match (method, place) {
        (Method::GET, Some([plural])) => list(&state, plural, uri.query().unwrap_or_default()),
        (Method::POST, Some([plural])) => create(&mut state, plural, &body),
        (Method::GET, Some([plural, name])) => one(state.objects.get(&key(plural, name))),
        (Method::PATCH, Some([plural, name])) => apply(&mut state, plural, name, &body),
        (Method::DELETE, Some([plural, name])) => {
            // Its pods go with it.
            state.pods.iter_mut().filter(|pod| pod.owner == *name).for_each(|pod| pod.counted = false);
            one(state.objects.remove(&key(plural, name)).as_ref())
        }
        _ => refused(StatusCode::NOT_FOUND, "NotFound", "no such path"),
    }
}

fn key(plural: &str, name: &str) -> (String, String) {
    (plural.into(), name.into())
}

fn refused(code: StatusCode, reason: &str, message: &str) -> (StatusCode, Json<Value>) {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
        "message": message, "code": code.as_u16() });
    (code, Json(status))
}

fn one(object: Option<&Value>) -> (StatusCode, Json<Value>) {
    match object {
        Some(object) => (StatusCode::OK, Json(object.clone())),
        None => refused(StatusCode::NOT_FOUND, "NotFound", "not found"),
    }
}

/// Of selectors `a=b` and `a!=b` are understood.
fn list(state: &State, plural: &str, query: &str) -> (StatusCode, Json<Value>) {
    let selector = query.split('&').find_map(|part| part.strip_prefix("labelSelector=")).unwrap_or_default();
    let selector = selector.replace("%3D", "=").replace("%2F", "/").replace("%21", "!").replace("%2C", ",");
    let one = |object: &Value, wanted: &str| match (wanted.split_once("!="), wanted.split_once('=')) {
        (Some((label, value)), _) => object["metadata"]["labels"][label] != value,
        (None, Some((label, value))) => object["metadata"]["labels"][label] == value,
        (None, None) => true,
    };
    let fits = |object: &Value| selector.split(',').all(|wanted| one(object, wanted));
    let of_kind = state.objects.iter().filter(|((kind, _), object)| kind == plural && fits(object));
    let items: Vec<Value> = of_kind.map(|(_, object)| object.clone()).collect();
    let (group, version, kind) = kind_of(plural).unwrap_or_default();
    let list = json!({ "kind": format!("{kind}List"), "apiVersion": api_version(group, version),
        "metadata": { "resourceVersion": "1" }, "items": items });
    (StatusCode::OK, Json(list))
}

fn create(state: &mut State, plural: &str, body: &[u8]) -> (StatusCode, Json<Value>) {
    let Ok(mut object) = serde_json::from_slice::<Value>(body) else {
        return refused(StatusCode::BAD_REQUEST, "BadRequest", "no JSON");
    };
    if object["metadata"]["name"].is_null() {
        let prefix = object["metadata"]["generateName"].as_str().unwrap_or_default();
        object["metadata"]["name"] = format!("{prefix}{}", state.objects.len()).into();
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_string();
    if state.objects.contains_key(&key(plural, &name)) {
        return refused(StatusCode::CONFLICT, "AlreadyExists", "already exists");
    }
    object["metadata"]["uid"] = format!("uid-{plural}-{name}").into();
    state.objects.insert(key(plural, &name), object.clone());
    (StatusCode::CREATED, Json(object))
}

/// Server-side apply by one manager: what is sent is what is wanted.
fn apply(state: &mut State, plural: &str, name: &str, body: &[u8]) -> (StatusCode, Json<Value>) {
    let Ok(object) = serde_json::from_slice::<Value>(body) else {
        return refused(StatusCode::BAD_REQUEST, "BadRequest", "no JSON");
    };
    let code = if state.objects.contains_key(&key(plural, name)) { StatusCode::OK } else { StatusCode::CREATED };
    state.objects.insert(key(plural, name), object.clone());
    (code, Json(object))
}

fn kind_of(plural: &str) -> Option<(&'static str, &'static str, &'static str)> {
    SERVED.iter().find_map(|(group, version, kinds)| {
        kinds.iter().find(|(p, _)| *p == plural).map(|(_, kind)| (*group, *version, *kind))
    })
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.into() } else { format!("{group}/{version}") }
}

fn discovery(path: &[&str]) -> Option<Value> {
    let resources = |group: &str| {
        let (_, version, kinds) = SERVED.iter().find(|(g, ..)| *g == group)?;
        let resource = |(plural, kind): &(&str, &str)| {
            json!({ "name": plural, "singularName": kind.to_lowercase(), "namespaced": true, "kind": kind,
                "verbs": ["create", "delete", "get", "list", "patch", "watch"] })
        };
        let all: Vec<Value> = kinds.iter().map(resource).collect();
        Some(json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version(group, version),
            "resources": all }))
    };
    match path {
        ["version"] => Some(json!({ "major": "1", "minor": "33", "gitVersion": "v1.33.0" })),
        ["api"] => Some(json!({ "kind": "APIVersions", "versions": ["v1"] })),
        ["api", "v1"] => resources(""),
        ["apis"] => {
            let group = |(group, version, _): &(&str, &str, _)| {
                let of = json!({ "groupVersion": api_version(group, version), "version": version });
                json!({ "name": group, "versions": [of], "preferredVersion": of })
            };
            let groups: Vec<Value> = SERVED.iter().filter(|(g, ..)| !g.is_empty()).map(group).collect();
            Some(json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups }))
        }
        ["apis", group, _] => resources(group),
        ["openapi", "v3"] => {
            let path = |(group, version, _): &(&str, &str, _)| {
                let of = if group.is_empty() { "api/v1".into() } else { format!("apis/{group}/{version}") };
                (of.clone(), json!({ "serverRelativeURL": format!("/openapi/v3/{of}") }))
            };
            Some(json!({ "paths": SERVED.iter().map(path).collect::<serde_json::Map<String, Value>>() }))
        }
        ["openapi", "v3", "api", "v1"] => Some(document("")),
        ["openapi", "v3", "apis", group, _] => Some(document(group)),
        _ => None,
    }
}

/// Enough for `kubectl` to see that the server itself refuses unknown fields.
fn document(group: &str) -> Value {
    let kinds = SERVED.iter().find(|(g, ..)| *g == group);
    let paths = kinds.into_iter().flat_map(|(group, version, kinds)| {
        kinds.iter().map(move |(plural, kind)| {
            let of = json!({ "group": group, "version": version, "kind": kind });
            let parameters = json!([{ "name": "fieldValidation", "in": "query" }]);
            let patch = json!({ "x-kubernetes-group-version-kind": of, "parameters": parameters, "responses": {} });
            (format!("/{plural}/{{name}}"), json!({ "patch": patch }))
        })
    });
    json!({ "openapi": "3.0.0", "info": { "title": "test", "version": "1" },
        "paths": paths.collect::<serde_json::Map<String, Value>>() })
}
