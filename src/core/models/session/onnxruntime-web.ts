// The build bundles this file with its imports: only 15 of the 150 MB of the package onnxruntime-web are needed.
export { env, InferenceSession, Tensor } from 'onnxruntime-web'
