//! What is read, what is refused, what is written.

use serde_json::json;

use super::*;

fn with(key: &str, value: Value) -> Result<ModelConfig, ModelError> {
    let mut json = ModelConfig::tiny(64).to_json();
    json[key] = value;
    ModelConfig::from_json(&json, Path::new("config.json"))
}

fn llama3() -> Value {
    json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64})
}

#[test]
fn json_round_trip() {
    for family in [Family::Llama, Family::Qwen2, Family::Qwen3] {
        let mut config = ModelConfig { family, eos_token_ids: vec![2, 3], ..ModelConfig::tiny(64) };
        assert_eq!(ModelConfig::from_json(&config.to_json(), Path::new("c")).unwrap(), config);
        config.bos_token_id = Some(1);
        config.rope_scaling = with("rope_scaling", llama3()).unwrap().rope_scaling;
        assert!(config.rope_scaling.is_some());
        assert_eq!(ModelConfig::from_json(&config.to_json(), Path::new("c")).unwrap(), config);
    }
}

#[test]
fn what_the_network_cannot_do_is_refused_by_name() {
    for (key, value) in [
        ("model_type", json!("mamba")),
        ("hidden_act", json!("gelu")),
        ("attention_bias", json!(true)),
        ("architectures", json!(["LlamaForSequenceClassification"])),
        ("use_sliding_window", json!(true)),
        ("layer_types", json!(["full_attention", "sliding_attention"])),
        ("rope_scaling", json!({"rope_type": "llama3"})),
        ("rope_scaling", json!({"type": "yarn", "factor": 4.0})),
        ("rope_parameters", json!({"rope_type": "linear", "factor": 4.0})),
        ("partial_rotary_factor", json!(0.5)),
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
    let qwen = json!({"model_type": "qwen3", "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 8,
        "num_hidden_layers": 1, "vocab_size": 9, "num_key_value_heads": 2, "layer_types": ["full_attention"]});
    let config = ModelConfig::from_json(&qwen, Path::new("c")).unwrap();
    assert_eq!((config.head_dim, config.max_position_embeddings), (128, 32768));
}

#[test]
fn the_rope_of_llama_3_is_read_in_both_styles() {
    let old = with("rope_scaling", llama3()).unwrap();
    let mut rope = llama3();
    rope["rope_theta"] = json!(10000.0);
    assert_eq!(with("rope_parameters", rope).unwrap(), old);
    let mut bent = llama3();
    bent["low_freq_factor"] = json!(4.0);
    assert!(with("rope_scaling", bent).unwrap_err().to_string().contains("below high_freq_factor"));
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
