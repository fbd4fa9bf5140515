// The build for WebAssembly alone: those for GPUs are at least 16.8 MB instead of 14.2.
export { env, InferenceSession, Tensor } from 'onnxruntime-web/wasm'
