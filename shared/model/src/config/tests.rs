//! What is read, what is refused, what is written.

use serde_json::json;

use super::*;

fn with(key: &str, value: Value) -> Result<ModelConfig, ModelError> {
    let mut json = ModelConfig::tiny(64).to_json();
    json[key] = value;
    ModelConfig::from_json(&json, Path::new("config.json"))
}

#[test]
fn json_round_trip() {
    let mut config = ModelConfig::tiny(64);
    config.eos_token_ids = vec![2, 3];
    config.bos_token_id = Some(1);
    assert_eq!(ModelConfig::from_json(&config.to_json(), Path::new("c")).unwrap(), config);
}

#[test]
fn what_the_network_cannot_do_is_refused_by_name() {
    for (key, value) in [
        ("model_type", json!("mamba")),
        ("hidden_act", json!("gelu")),
        ("attention_bias", json!(true)),
        ("rope_scaling", json!({"rope_type": "llama3"})),
        ("num_key_value_heads", json!(3)),
        ("head_dim", json!(7)),
        ("vocab_size", json!(null)),
        ("hidden_size", json!(-1)),
        ("eos_token_id", json!(64)),
    ] {
        let message = with(key, value).unwrap_err().to_string();
        assert!(message.contains(key) && message.starts_with("config.json"), "{message}");
    }
    assert!(with("rope_scaling", json!({"rope_type": "default"})).is_ok());
}

#[test]
fn defaults_are_those_of_transformers() {
    let json = json!({"model_type": "llama", "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 8,
        "num_hidden_layers": 1, "vocab_size": 9, "rope_parameters": {"rope_theta": 5.0, "rope_type": "default"}});
    let config = ModelConfig::from_json(&json, Path::new("c")).unwrap();
    assert_eq!((config.head_dim, config.num_key_value_heads, config.rope_theta), (8, 4, 5.0));
    assert!(!config.tie_word_embeddings);
}

#[test]
fn generation_config_names_the_end_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = ModelConfig::tiny(64);
    config.eos_token_ids = vec![2];
    config.save(dir.path()).unwrap();
    std::fs::write(dir.path().join("generation_config.json"), r#"{"eos_token_id": [5, 6]}"#).unwrap();
    assert_eq!(ModelConfig::load(dir.path()).unwrap().eos_token_ids, [5, 6]);
}
