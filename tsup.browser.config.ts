import { resolve } from 'node:path'
import { readFileSync } from 'node:fs'
import { defineConfig, type Options } from 'tsup'

/** Scripts of browsers that use the kernels, so after `scripts/build-kernels.mjs`. */
const withKernels: Options = {
  platform: 'browser',
  format: 'esm',
  target: 'es2022',
  noExternal: [/./],
  minify: true,
  splitting: true,
  silent: true,
  esbuildPlugins: [
    {
      name: 'browser',
      setup({ onResolve, onLoad }) {
        onResolve({ filter: /\/compiled-kernels\.js$/ }, () => ({
          path: resolve('build/core/media/dsp/kernels/compiled-kernels.js'),
        }))
        // Packages that run on Node.js, too, would import these there. Our own code does not (test/architecture).
        onResolve({ filter: /^(node:.*|module|fs|path|url|worker_threads)$/ }, ({ path }) => ({
          path,
          namespace: 'nothing',
        }))
        onLoad({ filter: /.*/, namespace: 'nothing' }, () => ({ contents: '' }))
        // For pages from files, onnxruntime-web names its own file, which is not there, and Turbopack looks for it.
        onLoad({ filter: /ort\.wasm\.bundle\.min\.mjs$/ }, ({ path }) => ({
          contents: readFileSync(path, 'utf8').replaceAll(
            /new \w+\("ort[\w.]+", ?import\.meta\.url\)/g,
            'new URL(import.meta.url)',
          ),
        }))
      },
    },
  ],
}

/** `stemwork/browser`: a script for the page, those of its workers and that of the audio thread. */
const ofPages: Options = {
  ...withKernels,
  outDir: 'dist/browser',
  tsconfig: 'tsconfig.browser.json',
  footer: { js: `/*\n${readFileSync('scripts/onnxruntime-licences.txt', 'utf8').trim()}\n*/` },
}

export default defineConfig([
  {
    ...ofPages,
    entry: {
      index: 'src/browser/index.ts',
      worker: 'src/browser/worker.ts',
      'live-worker': 'src/browser/live-worker.ts',
      // Of `/console`, which finds beats with the transform of the separation.
      'analysis-worker': 'src/console/mixer/analysis-worker.ts',
    },
  },
  // Vite would put a script below 4 kB into that of the page, as a `data:` address, which the page's policy forbids.
  { ...ofPages, entry: { 'live-processor': 'src/browser/live-processor.ts' }, minify: false },
  // Of `/console`, loaded when they are used.
  {
    ...withKernels,
    entry: {
      'export-mix': 'src/console/mixer/export-mix.ts',
      'stretch-processor': 'src/console/player/stretch-processor.ts',
    },
    outDir: 'dist/console',
    tsconfig: 'tsconfig.console.json',
    // Each whole: in parts they are ten files.
    splitting: false,
  },
])
