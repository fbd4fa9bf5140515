/** Written by `scripts/build-kernels.mjs`: the compiled kernels by name, in base64, so that no platform reads files. */
export declare const compiledKernels: Record<
  'dot-product' | 'flac-kernels' | 'frame-kernels' | 'mp3-kernels' | 'pack-stereo' | 'wiener-kernels',
  string
>
