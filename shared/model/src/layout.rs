//! Which weights a decoder has: their Hugging Face names and shapes, in the one order that everything else follows.

use crate::ModelConfig;

/// Name and shape of every weight: embedding, layers, final norm, `lm_head` where not tied.
pub(crate) fn layout(config: &ModelConfig) -> Vec<(String, Vec<i64>)> {
    let vocabulary = vec![config.vocab_size, config.hidden_size];
    let mut all = vec![("model.embed_tokens.weight".to_string(), vocabulary.clone())];
    for layer in 0..config.num_hidden_layers {
        let named = |(part, shape)| (format!("model.layers.{layer}.{part}"), shape);
        all.extend(layer_parts(config).into_iter().map(named));
    }
    all.push(("model.norm.weight".to_string(), vec![config.hidden_size]));
    if !config.tie_word_embeddings {
        all.push(("lm_head.weight".to_string(), vocabulary));
    }
    all
}

/// The weights of one layer; names follow `model.layers.N.`. Matrices are \[out, in\].
fn layer_parts(config: &ModelConfig) -> Vec<(&'static str, Vec<i64>)> {
    let (hidden, inner, width) = (config.hidden_size, config.intermediate_size, config.head_dim);
    let (queries, shared) = (config.num_attention_heads * width, config.num_key_value_heads * width);
    let mut parts = vec![
        ("input_layernorm.weight", vec![hidden]),
        ("self_attn.q_proj.weight", vec![queries, hidden]),
        ("self_attn.k_proj.weight", vec![shared, hidden]),
        ("self_attn.v_proj.weight", vec![shared, hidden]),
        ("self_attn.o_proj.weight", vec![hidden, queries]),
        ("post_attention_layernorm.weight", vec![hidden]),
        ("mlp.gate_proj.weight", vec![inner, hidden]),
        ("mlp.up_proj.weight", vec![inner, hidden]),
        ("mlp.down_proj.weight", vec![hidden, inner]),
    ];
    if config.family.has_biases() {
        parts.extend([
            ("self_attn.q_proj.bias", vec![queries]),
            ("self_attn.k_proj.bias", vec![shared]),
            ("self_attn.v_proj.bias", vec![shared]),
        ]);
    }
    if config.family.has_head_norms() {
        parts.extend([("self_attn.q_norm.weight", vec![width]), ("self_attn.k_norm.weight", vec![width])]);
    }
    parts
}
