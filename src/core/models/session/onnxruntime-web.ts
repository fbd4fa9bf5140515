// The build bundles this file with what it imports: of the package onnxruntime-web, which is 150 MB, 15 MB are needed.
export { env, InferenceSession, Tensor } from 'onnxruntime-web'
